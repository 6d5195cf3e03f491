"""Measurements of models and of the engine: benchmarks, stage times, comparisons of solvers and contact models."""
