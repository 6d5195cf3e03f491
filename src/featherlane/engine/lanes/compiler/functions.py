"""The table of all functions: the compiled form of every name of `values`; a test compares the two."""

from featherlane.engine.lanes.compiler.record_functions import OF_RECORDS
from featherlane.engine.lanes.compiler.table import Table
from featherlane.engine.lanes.compiler.value_functions import OF_VALUES

FUNCTIONS = Table({**OF_VALUES, **OF_RECORDS})
