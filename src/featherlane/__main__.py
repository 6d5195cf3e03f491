"""`python -m featherlane`: the command line."""

from .cli import main

main()
