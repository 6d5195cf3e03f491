"""Contact problems that others published, one family in each file; benchmarks/contact.py runs them."""
