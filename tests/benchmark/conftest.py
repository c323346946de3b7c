"""The benchmark lies beside the package, not in it."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
importlib.import_module("bench")  # now, before another folder of tests puts a module of that name first
