"""Batches: worlds stepped together in the vector lanes of the CPU.

A `Batch` (`batch.py`) is made of the arrays of its worlds (`arrays.py`) and of a runner that steps them (`runner.py`).
`MixedBatch` steps worlds of several models.  `failure.py` keeps steps with non-finite or unsolved states for replay.
"""
