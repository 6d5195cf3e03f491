"""The table of all functions: the compiled form of every name of `values`; a test compares the two."""

from featherlane.lanes.compiler.record_functions import OF_RECORDS
from featherlane.lanes.compiler.table import Table
from featherlane.lanes.compiler.value_functions import OF_VALUES

FUNCTIONS = Table({**OF_VALUES, **OF_RECORDS})
