"""The viewer in the browser: what is drawn of worlds, their time, and the page that shows both.

`session`, `history` and `hand` know time and need no browser; `shapes`, `frame` and `scene` draw; `page` and `door` put
both into a page.  viser, which serves it, and trimesh, which it brings, are imported by what needs them alone.
"""
