"""What is measured of models and of the engine: races, times of stages, how well solvers and contact models do."""
