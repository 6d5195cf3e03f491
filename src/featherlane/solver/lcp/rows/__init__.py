"""The rows of the LCP of a step."""
