"""Defines `Data`, one world in Python, and the contacts that users give to it."""
