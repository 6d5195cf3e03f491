"""The one table of functions: every name of `values`, compiled; a test holds it against what stands there."""

from featherlane.lanes.compiler.record_functions import OF_RECORDS
from featherlane.lanes.compiler.table import Table
from featherlane.lanes.compiler.value_functions import OF_VALUES

FUNCTIONS = Table({**OF_VALUES, **OF_RECORDS})
