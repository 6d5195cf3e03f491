"""Direct methods for LCPs: Dantzig, Lemke, block pivoting, and their shared factor."""
