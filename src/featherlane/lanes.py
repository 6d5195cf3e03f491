"""The kernel language: `@kernel`, and the functions that kernels may call.

    from featherlane.lanes import exp, kernel, where

docs/kernel-language.md describes the language.
"""

from featherlane.engine import lanes as _lanes
from featherlane.engine.lanes import *

__all__: list[str] = []
__all__ += _lanes.__all__
