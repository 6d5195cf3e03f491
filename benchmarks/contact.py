"""Contact problems that others published, in MuJoCo and under each contact model; a minute.

    python benchmarks/contact.py --write
    python benchmarks/contact.py --only creep --write
    python benchmarks/contact.py --only fclib --fclib FOLDER --write

Each family writes one table of docs/contact-benchmark.md and draws its plot.  FCLib's problems are read from a folder
that is not part of the project: a copy of github.com/FrictionalContactLibrary/fclib-library, or the files .hdf5 and
.dat of numerics/src/FrictionContact/test/data in github.com/siconos/siconos.  Without a folder this family is skipped.
"""

from __future__ import annotations

from pathlib import Path

from contact_problems import classic, creep, dart, fclib, simbenchmark
from report import arguments, origin, publish

FAMILIES = ("creep", "classic", "history", "simbenchmark", "dart", "fclib")


def main() -> None:
    """Prints the tables of the chosen families, and writes them into their page with `--write`."""
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=FAMILIES, help="one family instead of all")
    parser.add_argument("--fclib", type=Path, help="folder with FCLib's problems")
    asked = parser.parse_args()
    families = [asked.only] if asked.only else FAMILIES
    if "creep" in families:
        publish("contact_creep", f"{creep.text()}\n\n{origin()}", asked.write)
    if "classic" in families:
        publish("contact_classic", f"{classic.text()}\n\n{origin()}", asked.write)
    if "history" in families:
        publish("contact_history", f"{classic.history()}\n\n{origin()}", asked.write)
    if "simbenchmark" in families:
        publish("contact_simbenchmark", f"{simbenchmark.text()}\n\n{origin()}", asked.write)
    if "dart" in families:
        publish("contact_dart", f"{dart.text()}\n\n{origin()}", asked.write)
    if "fclib" in families and asked.fclib:
        publish("contact_fclib", f"{fclib.text(asked.fclib)}\n\n{origin()}", asked.write)
    elif "fclib" in families:
        print("fclib: skipped, no folder is given (--fclib)")


if __name__ == "__main__":
    main()
