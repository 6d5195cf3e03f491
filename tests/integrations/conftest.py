"""One thread for PyTorch: its networks are small here, and waiting for each other costs more than they do."""

try:
    import torch
except ImportError:
    pass
else:
    torch.set_num_threads(1)
