"""Frozen worlds: a model, its memory and its compiled kernels in one file, which later versions and C step, too."""
