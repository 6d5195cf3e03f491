"""The front end of the kernel compiler: from a function's syntax tree to LLVM IR.  Imported only for compiling.

    types             types of the kernel language, and their conversions
    source, webs      a kernel's syntax tree; grouping of a name's bindings into variables
    writer            the LLVM IR of one function: registers, blocks, variables
    value_functions, record_functions   compiled definitions of the functions of `values`; one table in `functions`
    tangents          values with tangents: the chain rule of each operation
    expressions, statements   translation of the syntax tree
    program           functions by kernel and argument types; the LLVM IR of stages
    rules             the error for code outside the language, with the line and the rule

docs/kernel-language.md describes the language.  Each function is written once per combination of argument types that
calls it; types follow from the arguments.  No fast-math flag is set, so the same source gives bitwise identical results
at every width, on every processor, ahead of time and just in time.
"""
