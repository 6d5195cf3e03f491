"""Lanes: values for one world or for W worlds, records of them, and kernels over records.  No physics is here.

Modules:

    layout, record            fields of a record, and its memory
    values, mathematics       the functions that kernels may call
    sort, worlds              kernels for sorting integers, and for the worlds of a tile one by one
    kernel, choice            `@kernel`, `@stage`; kernels with a dispatch table
    derivative, tangents      `jvp`: derivatives of kernels; values with tangents
    runtime, cache            loading or compiling a stage
    build                     ahead-of-time compilation of all stages in several processes, and linking
    compiler, toolchain       the kernel compiler's front end, and LLVM; imported only for compiling
    engine                    in-memory linking of compiled code
"""

from featherlane.engine.lanes.choice import dispatch
from featherlane.engine.lanes.derivative import derivative_rule, jvp
from featherlane.engine.lanes.kernel import Kernel, Stage, kernel, kernel_factory, stage
from featherlane.engine.lanes.layout import Field, Layout
from featherlane.engine.lanes.mathematics import acos, asin, atan2, exp, log, pow_, sincos
from featherlane.engine.lanes.record import Record, aligned, allocate
from featherlane.engine.lanes.runtime import KernelError, Library
from featherlane.engine.lanes.values import (
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
    record_at,
    rint,
    scalars,
    scale_exponent,
    seed,
    single_precision,
    split_exponent,
    split_tangents,
    sqrt,
    true_mask,
    unrolled,
    where,
    whole,
    width,
    write_lane,
)

__all__ = [  # noqa: RUF022  in groups
    # kernels and stages
    "Kernel",
    "Stage",
    "dispatch",
    "kernel",
    "kernel_factory",
    "stage",
    # records and layouts
    "Field",
    "Layout",
    "Record",
    "aligned",
    "allocate",
    # compiled libraries
    "KernelError",
    "Library",
    # arithmetic
    "clip",
    "copysign",
    "fabs",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "rint",
    "sqrt",
    # elementary functions
    "acos",
    "asin",
    "atan2",
    "exp",
    "log",
    "pow_",
    "sincos",
    # derivatives
    "derivative_rule",
    "jvp",
    "seed",
    "split_tangents",
    # masks and selection
    "all_",
    "any_",
    "false_mask",
    "has",
    "not_",
    "true_mask",
    "where",
    # vectors and tables
    "dot",
    "flat",
    "gather",
    "gather_rows",
    "join",
    # lanes and precision
    "lane_index",
    "read_lane",
    "real",
    "single_precision",
    "width",
    "write_lane",
    # integers and bits
    "count_ones",
    "scale_exponent",
    "split_exponent",
    "whole",
    # loops, memory and calls
    "call",
    "doubles",
    "eights",
    "prefetch",
    "record_at",
    "scalars",
    "unrolled",
]
