"""Compile for cards that are not there. A process of its own: `tests/test_aot.py` starts it."""

import importlib.util

# triton has wheels for Linux only
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["test_*.py"]
