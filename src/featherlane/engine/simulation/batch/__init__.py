"""Steps batches of worlds together in the vector lanes of the CPU.

`Batch` (`batch.py`) holds the arrays of its worlds (`arrays.py`) and a runner that steps them (`runner.py`),
which prepares workspaces and transfers of tiles with `plans.py`.
`MixedBatch` steps worlds of several models.  `failure.py` stores steps with non-finite or unsolved states for replay.
"""
