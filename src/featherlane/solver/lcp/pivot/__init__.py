"""Direct methods for LCPs: Dantzig, Lemke, block pivoting, and the factor that they share."""
