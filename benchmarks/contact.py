"""Contact problems that others published, in MuJoCo and under each contact model; five minutes.

    python benchmarks/contact.py --write
    python benchmarks/contact.py --only creep --write

Each family writes one table of docs/contact-benchmark.md and draws its plots.  FCLib's problems are read from a folder
(`--fclib`) that is not part of the project.
"""

from __future__ import annotations

from contact_problems import classic, creep
from report import arguments, origin, publish

FAMILIES = ("creep", "classic")


def main() -> None:
    """Prints the tables of the chosen families, and writes them into their page with `--write`."""
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=FAMILIES, help="one family instead of all")
    asked = parser.parse_args()
    families = [asked.only] if asked.only else FAMILIES
    if "creep" in families:
        publish("contact_creep", f"{creep.text()}\n\n{origin()}", asked.write)
    if "classic" in families:
        publish("contact_classic", f"{classic.text()}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
