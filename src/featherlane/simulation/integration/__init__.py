"""Integrates worlds with error control: each world takes steps of its own size."""
