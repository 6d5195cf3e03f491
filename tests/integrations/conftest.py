"""Sets one thread for PyTorch: its networks are small here, and synchronization costs more than it saves."""

try:
    import torch
except ImportError:
    pass
else:
    torch.set_num_threads(1)
