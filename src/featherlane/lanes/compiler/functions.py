"""The one table of functions: every name of `values`, compiled; a test holds it against what stands there."""

from __future__ import annotations

from .record_functions import OF_RECORDS
from .table import Table
from .value_functions import OF_VALUES

FUNCTIONS = Table({**OF_VALUES, **OF_RECORDS})
