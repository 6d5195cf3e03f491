"""The control panel of the page, with one module per folder."""
