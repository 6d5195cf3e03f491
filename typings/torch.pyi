# not typed here: without a stub, and where it is not installed, pyright takes featherlane's bridge for it
from typing import Any

def __getattr__(name: str) -> Any: ...
