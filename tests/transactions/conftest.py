from __future__ import annotations

import sys
from pathlib import Path

from every_store import _servers_end_with_the_session  # noqa: F401 - a fixture

sys.path.insert(0, str(Path(__file__).parents[1] / "processes"))
