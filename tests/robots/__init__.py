"""Real robots, out of wheels.  A package with this file, for `benchmarks/robots.py` has the same name."""
