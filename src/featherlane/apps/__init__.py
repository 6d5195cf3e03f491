"""Programs over the public modules: the command line, the viewer, diagnoses and benchmarks.  Private."""
