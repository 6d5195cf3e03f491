"""`featherlane diagnose`: lists errors and notes about a model, with advice, or tests the installation."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from rich.padding import Padding
from rich.text import Text

from featherlane.apps.cli.exit import WRONG, complain
from featherlane.apps.cli.output import console, model_label, print_json
from featherlane.apps.doctor import SEVERITIES, Finding, diagnose
from featherlane.apps.doctor.self_test import self_test

FEW = 4  # most elements listed per check
STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def diagnose_source(source: str, every: bool, as_json: bool) -> int:
    """Diagnoses a model and prints the findings.

    Args:
        every: whether to list every element; otherwise the first few of each check.
        as_json: whether to print one JSON document with every element.

    Returns:
        The exit code: WRONG if there is an error.

    Raises:
        ModelError: the model cannot be found, read or compiled.
    """
    found = diagnose(source)
    counts = Counter(finding.severity for finding in found)
    totals = {severity: counts[severity] for severity in SEVERITIES}
    if as_json:
        print_json({"model": source, "counts": totals, "findings": [finding.plain() for finding in found]})
    else:
        _print(source, totals, found, every)
    if totals["error"]:
        return complain(f"{_counted(totals['error'], 'error')} in {model_label(source)}", WRONG)
    return 0


def run_self_test(as_json: bool) -> int:
    """Tests the installation and prints a line for each test.

    Args:
        as_json: whether to print one JSON document.

    Returns:
        The exit code: WRONG if a test failed.
    """
    found = []
    for outcome in self_test():
        found.append(outcome)
        if not as_json:
            word, style = ("passed", "green") if outcome.passed else ("FAILED", "bold red")
            console().print(Text.assemble((word, style), f" {outcome.test}: {outcome.seen}"))
    failed = [outcome.test for outcome in found if not outcome.passed]
    if as_json:
        print_json({"tests": [asdict(outcome) for outcome in found], "failed": len(failed)})
    return complain(f"{_counted(len(failed), 'test')} failed: {'; '.join(failed)}", WRONG) if failed else 0


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _print(source: str, totals: dict[str, int], found: list[Finding], every: bool) -> None:
    screen = console()
    shown = ", ".join(_counted(number, word) for word, number in totals.items() if number)
    screen.print(Text(f"{model_label(source)}: {shown or 'no findings'}", style="bold" if shown else "green"))
    for name in dict.fromkeys(finding.check for finding in found):
        screen.print()
        for line, indent in _section([finding for finding in found if finding.check == name], every):
            screen.print(Padding(line, (0, 0, 0, indent), expand=False))


def _section(found: list[Finding], every: bool) -> list[tuple[Text, int]]:
    """Returns the lines of one check, each with its indentation."""
    first, few = found[0], len(found) if every or len(found) <= FEW + 1 else FEW
    head = Text.assemble((first.severity, STYLES[first.severity]), " ", (first.check, "bold"), f": {first.why}")
    lines = [(head, 0)]
    alike = len({finding.advice for finding in found}) == 1
    for finding in found[:few]:
        lines.append((Text.assemble((finding.element, "cyan"), f": {finding.seen}"), 2))
        if not alike:
            lines.append((_advice(finding), 4))
    if few < len(found):
        lines.append((Text(f"and {len(found) - few} more (use --all to list them)", style="dim"), 2))
    return [*lines, (_advice(first), 2)] if alike else lines


def _advice(finding: Finding) -> Text:
    return Text.assemble(("try: ", "dim"), finding.advice)
