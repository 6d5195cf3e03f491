"""`python -m featherlane`: the command line."""

from featherlane.apps.cli import main

main()
