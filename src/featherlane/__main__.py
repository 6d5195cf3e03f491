"""`python -m featherlane`: the command line."""

from featherlane.cli import main

main()
