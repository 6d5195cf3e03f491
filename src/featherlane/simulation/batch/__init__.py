"""Many worlds as users hold them: `Batch`, its failures; and states and sensors' noise, of one world as well.

A batch is made of rows (`worlds.py`, `expanded.py`), of what runs on them (`running.py`) and of calls (`batch.py`).
"""
