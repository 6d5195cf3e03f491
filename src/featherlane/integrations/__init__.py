"""Integrations: interfaces of other libraries, on Featherlane.

Each module has the names and signatures of the library that it stands in for, so that existing code changes its import
alone.  A library is imported only by its own module.
"""
