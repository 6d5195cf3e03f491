"""The front end of kernels: from the syntax tree of a function to LLVM's text.  Imported only to compile.

    types             the kinds of things that a kernel speaks of, and how they convert
    source, webs      a kernel's syntax tree; which bindings of a name are one variable
    writer            the text of one function: registers, blocks, variables
    value_functions, record_functions   what each function of `values` is when compiled; one table in `functions`
    expressions, statements   what a kernel says
    program           functions by kernel and argument types; the text of a stage
    rules             what a kernel may not say: one error, with the line and the rule

The language is described in docs/kernel-language.md.  Every function is written once for each combination of argument
types that calls it; types follow from the arguments.  No fast-math flag is set anywhere, so the same source gives the
same bits at every width, on every processor, ahead of time and just in time.
"""
