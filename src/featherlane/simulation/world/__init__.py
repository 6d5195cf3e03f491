"""One world as users hold it: `Data`, and the contacts that they give it."""
