"""What gpu_kernels.py and gpu_engine.py are made of."""
