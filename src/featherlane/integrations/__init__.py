"""Integrations: interfaces of other libraries, implemented on Featherlane.

Each module has the names and signatures of the library that it replaces, so existing code only changes its import.
Each library is imported only by its own module.
"""
