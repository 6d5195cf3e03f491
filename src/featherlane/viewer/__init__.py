"""What worlds look like in a browser, drawn with viser (extra `[view]`)."""
