"""The entries of the Hessian: where they stand, and what rows make of them."""
