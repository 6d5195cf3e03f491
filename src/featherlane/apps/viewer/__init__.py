"""The browser viewer: it draws worlds, controls their time and serves a page that shows both.

`session`, `history` and `mouse_forces` simulate and do not depend on the browser; `shapes`, `frame` and `scene` draw;
`page` and `view` build the page.  Only modules that use viser (the server) and trimesh (its dependency) import them.
"""
