"""Lanes: values for one world or for W worlds, records of them, and kernels over records.  No physics is here.

Modules:

    layout, record            fields of a record, and its memory
    values, mathematics       the functions that kernels may call
    sort, worlds              kernels for sorting integers, and for the worlds of a tile one by one
    kernel, choice            `@kernel`, `@stage`; kernels with a table of cases
    runtime, cache            loading or compiling a stage
    build                     ahead-of-time compilation of all stages in several processes, and linking
    compiler, toolchain       the kernel compiler's front end, and LLVM; imported only for compiling
    engine                    in-memory linking of compiled code
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
    dot,
    doubles,
    eights,
    fabs,
    false_mask,
    flat,
    floor,
    fma,
    fmax,
    fmin,
    gather,
    gather_rows,
    has,
    join,
    lane_index,
    not_,
    prefetch,
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
    "dot",
    "doubles",
    "eights",
    "exp",
    "fabs",
    "false_mask",
    "flat",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "gather",
    "gather_rows",
    "has",
    "join",
    "kernel",
    "lane_index",
    "log",
    "not_",
    "pow_",
    "prefetch",
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
]
