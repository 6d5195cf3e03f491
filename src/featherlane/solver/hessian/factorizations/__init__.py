"""The ways to store the Hessian and to solve with it; `choice.py` says when each serves."""
