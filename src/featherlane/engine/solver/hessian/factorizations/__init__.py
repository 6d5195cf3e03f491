"""Storage formats and factorizations of the Hessian; `choice.py` selects one."""
