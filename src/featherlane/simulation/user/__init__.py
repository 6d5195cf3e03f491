"""Functions of the user that the engine calls."""
