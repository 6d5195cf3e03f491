"""Ray casting, and the shapes that have a closed form."""
