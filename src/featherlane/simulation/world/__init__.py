"""Worlds as users hold them: one (`Data`), many (`Batch`), their states and failures."""
