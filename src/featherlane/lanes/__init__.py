"""The machine: values that stand for one world or for W, records of them, and kernels over records.  No physics here.

Here is

    layout, record            what a record consists of, and its memory
    values, mathematics       the vocabulary of kernels
    sort, worlds              kernels that it makes: whole numbers in order, the worlds of a tile one by one
    kernel, choice            `@kernel`, `@stage`; kernels that are made of a table
    runtime, cache            how a stage comes to run
    build                     every stage ahead of time, over several processes, and linked
    compiler, toolchain       the front end of kernels, and LLVM behind it; imported only where something is compiled
    engine                    what was compiled, linked in memory
"""

from featherlane.lanes.choice import Choice
from featherlane.lanes.kernel import Kernel, Stage, kernel, stage
from featherlane.lanes.layout import Field, Layout
from featherlane.lanes.mathematics import acos, asin, atan2, exp, log, pow_, sincos
from featherlane.lanes.record import Record, aligned, allocate
from featherlane.lanes.runtime import KernelError, Library
from featherlane.lanes.values import (
    all_,
    any_,
    call,
    clip,
    copysign,
    count_ones,
    doubles,
    eights,
    fabs,
    false_mask,
    floor,
    fma,
    fmax,
    fmin,
    gather,
    gather_rows,
    has,
    lane_index,
    not_,
    read_lane,
    real,
    rint,
    scalars,
    scale_exponent,
    single_precision,
    split_exponent,
    sqrt,
    true_mask,
    unrolled,
    where,
    whole,
    width,
    write_lane,
    zero,
)

__all__ = [
    "Choice",
    "Field",
    "Kernel",
    "KernelError",
    "Layout",
    "Library",
    "Record",
    "Stage",
    "acos",
    "aligned",
    "all_",
    "allocate",
    "any_",
    "asin",
    "atan2",
    "call",
    "clip",
    "copysign",
    "count_ones",
    "doubles",
    "eights",
    "exp",
    "fabs",
    "false_mask",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "gather",
    "gather_rows",
    "has",
    "kernel",
    "lane_index",
    "log",
    "not_",
    "pow_",
    "read_lane",
    "real",
    "rint",
    "scalars",
    "scale_exponent",
    "sincos",
    "single_precision",
    "split_exponent",
    "sqrt",
    "stage",
    "true_mask",
    "unrolled",
    "where",
    "whole",
    "width",
    "write_lane",
    "zero",
]
