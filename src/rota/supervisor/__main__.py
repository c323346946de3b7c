"""Runs the parent process: `python …/rota/supervisor`, which `rota run` and `rota worker` become."""

from __future__ import annotations

import os
import sys
import types

# The package's own __init__ imports the whole library, three times the size of this process, so an empty one replaces
# it. Python has put this folder first in its path, so that it would find these modules under a second name.
rota = types.ModuleType("rota")
rota.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]  # noqa: PTH100, PTH120 - pathlib is large
sys.modules["rota"] = rota
del sys.path[0]

from rota.supervisor.parent import main  # noqa: E402

main()
