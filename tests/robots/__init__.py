"""Real robots, from wheels.  This file makes a package, because `benchmarks/robots.py` has the same name."""
