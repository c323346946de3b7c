"""A folder with an app, a store, and the database of a site whose tables django-celery-beat made."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rota.cli.main import main
from rota.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from datetime import datetime

APP = """
from rota import App

app = App()
for name in ("report", "first", "often", "later", "try"):
    app.task(lambda *args, **kwargs: None, name=f"shop.{name}")
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "site.db"
    script = Path(__file__).with_name("django_tables.py")
    made = subprocess.run([sys.executable, script, path], capture_output=True, text=True, check=False, timeout=200)
    assert made.returncode == 0, made.stderr
    return path.read_bytes()


class Folder:
    """An app, a site's database and a store."""

    def __init__(self, path: Path, filled: bytes) -> None:
        self.path = path
        (path / "site.db").write_bytes(filled)
        (path / "jobs.py").write_text(APP)

    def __call__(self, *words: str, code: int = 0, url: str = "sqlite:///site.db") -> str:
        return self.rota("import", "django-celery-beat", url, "--app", "jobs.py", *words, code=code)

    def rota(self, *words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, words, prog_name="rota")
        assert done.exit_code == code, (done.exit_code, done.output)
        return done.output

    def sql(self, text: str, *values: object) -> list[tuple]:
        with closing(sqlite3.connect(self.path / "site.db")) as connection, connection:
            return connection.execute(text, values).fetchall()

    def row(self, name: str) -> tuple:
        fields = "enabled, start_time, last_run_at"
        return self.sql(f"SELECT {fields} FROM django_celery_beat_periodictask WHERE name = ?", name)[0]  # noqa: S608

    def store(self) -> SqliteStore:
        store = SqliteStore(self.path / ".rota" / "rota.db")
        store.open()
        return store

    def schedules(self) -> dict:
        with closing(self.store()) as store:
            return {one.id: one for one in store.list_schedules(limit=200).items}


@pytest.fixture
def folder(tmp_path, monkeypatch, filled):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield Folder(tmp_path, filled)
    sys.modules.pop("jobs", None)


def ran(folder: Folder, name: str, at: datetime, *, count: int = 1) -> None:
    text = "UPDATE django_celery_beat_periodictask SET last_run_at = ?, total_run_count = ? WHERE name = ?"
    folder.sql(text, at.replace(tzinfo=None).isoformat(" "), count, name)
