"""The pytest plugin brings two fixtures, and costs who does not use them nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

USER_TEST = """
from rota import App, every

app = App()

@app.schedule(every("1h"), id="hourly")
def hourly(): ...

def test_a_day(rota_kit, manual_clock):
    kit = rota_kit(app)
    kit.travel("1d")
    assert kit.clock is manual_clock
    assert len(kit.fired("hourly")) == 24

def test_another_day(rota_kit):
    kit = rota_kit(app, inline=True)
    hourly.enqueue()
    assert [job.state for job in kit.jobs] == ["succeeded"]

def test_no_day():
    assert app.open().features.kind == "sqlite"
"""


def run(folder, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=240,
        check=False,
    )


def test_its_fixtures_make_kits_that_end_with_their_tests(tmp_path):
    (tmp_path / "test_user.py").write_text(USER_TEST, encoding="utf-8")
    ran = run(tmp_path, "-W", "error", "-m", "pytest", "-p", "rota.testing.plugin", "-p", "no:cacheprovider", "-q")
    assert "3 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import rota.testing", ("pytest", "rota.testing.kit", "asyncio")),
        ("from rota.testing import Kit, ManualClock", ("pytest",)),
        ("import pytest, rota.testing.plugin", ("rota.testing.kit", "rota.testing.clock", "rota.engine.worker.worker")),
    ],
)
def test_importing_loads_no_more_than_is_asked_for(tmp_path, code, unwanted):
    ran = run(tmp_path, "-c", f"{code}; import sys; assert not {{*{unwanted!r}}} & {{*sys.modules}}")
    assert ran.returncode == 0, ran.stderr


def test_a_name_that_the_package_does_not_have_is_an_attribute_error():
    with pytest.raises(ImportError, match="Nothing"):
        from rota.testing import Nothing  # noqa: F401, PLC0415
