"""`python tests/mutants --number 100 --seed 37` samples mutants of the sources and counts those that the tests detect.

Each mutant changes one expression or statement of `dynamics`, `constraint`, `collision`, `solver` or `simulation`.  The
tests of its package run until the first failure or the time limit.  A surviving mutant shows a missing test, or it
computes the same as the original.  With `--out` an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(TESTS)

from mutants.operators import PACKAGES, sample  # noqa: E402
from mutants.trial import Trials  # noqa: E402

SOURCE = TESTS.parent / "src"
VERDICTS = ("killed", "survived", "timed out", "error")


def main() -> int:
    """Judge the sample; return 1 if a test fails without mutation, or if more mutants live than in an earlier run."""
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the tests and the copy go, too
    chosen = sample(SOURCE / "featherlane", options.number, options.seed)
    wanted = options.only if options.only is not None else range(len(chosen))
    judged = {} if options.out is None else read(options.out)
    if options.only is None:
        wanted = [i for i in wanted if judged.get(chosen[i].key, {}).get("verdict", "error") == "error"]
    if wanted:
        with Trials(SOURCE, options.tests, options.cache, options.limit, options.pytest_args) as trials:
            for i in wanted:
                mutant = chosen[i]
                result = {"index": i, "package": mutant.path.split("/")[0], **trials.judge(mutant)}
                judged[mutant.key] = result
                print(
                    f"{i:3d} {result['verdict']:9} {result['seconds']:5.1f} s  {mutant.key}  {result['test']}",
                    flush=True,
                )
                if options.out is not None:
                    options.out.write_text(json.dumps(judged, indent=1) + "\n")
    judged = {mutant.key: judged[mutant.key] for mutant in chosen if mutant.key in judged}
    print(table(judged))
    worse = options.against is not None and is_worse(judged, read(options.against))
    return int(worse or any(result["verdict"] == "error" for result in judged.values()))


def parsed() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python tests/mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=100, help="mutants, the same number of each package")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--only", type=lambda text: [int(i) for i in text.split(",")], help="indices, as 3,17")
    parser.add_argument("--tests", type=Path, default=TESTS, help="folder of the tests; default: of this checkout")
    parser.add_argument("--out", type=Path, help="JSON file of the verdicts; mutants judged there are not run again")
    parser.add_argument("--against", type=Path, help="JSON file of an earlier run to compare with")
    parser.add_argument("--cache", type=Path, help="folder of compiled kernels for this run alone; default: temporary")
    parser.add_argument("--limit", type=float, default=60.0, help="time per mutant [s]")
    parser.add_argument("--pytest-args", type=shlex.split, default=[], help="further arguments of pytest, as one word")
    return parser.parse_args()


def read(path: Path) -> dict[str, dict]:
    """Read verdicts by the mutant's key; return none if the file does not exist."""
    return json.loads(path.read_text()) if path.exists() else {}


def table(judged: dict[str, dict]) -> str:
    """Return a table of the verdicts by package."""
    counts = Counter((result["package"], result["verdict"]) for result in judged.values())
    counts.update(("all", result["verdict"]) for result in judged.values())
    lines = [f"{'package':12}" + "".join(f"{verdict:>10}" for verdict in VERDICTS)]
    lines += [f"{name:12}" + "".join(f"{counts[name, v]:10d}" for v in VERDICTS) for name in (*PACKAGES, "all")]
    return "\n".join(lines)


def is_worse(now: dict[str, dict], before: dict[str, dict]) -> bool:
    """Print the mutants that only the earlier tests kill; return whether more of the common ones live than before."""
    common = [key for key in now if key in before]
    for key in common:
        if before[key]["verdict"] == "killed" != now[key]["verdict"]:
            print(f"no longer killed ({now[key]['verdict']}): {key}\n    by {before[key]['test']}")
    live = [sum(run[key]["verdict"] in ("survived", "timed out") for key in common) for run in (before, now)]
    print(f"{len(common)} of {len(now)} mutants are in both runs; {live[0]} lived before, {live[1]} live now")
    return live[1] > live[0]


if __name__ == "__main__":
    sys.exit(main())
