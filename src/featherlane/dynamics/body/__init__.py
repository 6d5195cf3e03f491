"""Bodies: where they are, how they move, and what forces on them are to the dofs."""
