"""Systems of equations that a step solves, and the derivatives of their solutions."""
