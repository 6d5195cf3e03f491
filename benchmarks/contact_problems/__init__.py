"""Contact problems that others published, one family in each file; benchmarks/contact.py runs them."""

import report  # noqa: F401  selects the tests' MuJoCo before a family imports another one
