"""The parent is one small interpreter: nothing of Rota but itself, and no library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import rota

LOAD = """
import json, sys, types
package = types.ModuleType("rota")
package.__path__ = [sys.argv[1]]
sys.modules["rota"] = package
import rota.supervisor.parent
print(json.dumps(sorted(sys.modules)))
"""


def test_the_parent_imports_nothing_else_of_rota_and_no_library():
    folder = str(Path(rota.__file__).parent)
    said = subprocess.run([sys.executable, "-I", "-c", LOAD, folder], capture_output=True, text=True, check=True).stdout
    loaded = json.loads(said)
    ours = {name for name in loaded if name.partition(".")[0] == "rota"}
    assert {name for name in ours if not name.startswith("rota.supervisor")} == {"rota"}
    heavy = {"click", "msgspec", "yaml", "rich", "logging", "subprocess", "asyncio", "sqlite3", "dataclasses"}
    assert not heavy & set(loaded)
