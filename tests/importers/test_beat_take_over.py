"""--take-over and --give-back under kills, with a real beat, Celery worker, Redis and PostgreSQL."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.rows import dict_row

from every_store import fresh_place, running_server
from rota.importers.take_over_record import KIND, unpack
from rota.model.micros import SECOND, datetime_of
from rota.store.contract import LedgerSpan

sys.path.append(str(Path(__file__).parents[1] / "processes"))  # for processes that start without importing

from kill_harness import Child, fresh_python, wait_until

HERE = Path(__file__).parent
ITEMS = {"a": 2, "b": 3, "c": 2}  # seconds between two runs
QUIET = 0.15  # of its interval, after and before each run: a kill hits nothing that is on its way
FAR = datetime(2100, 1, 1, tzinfo=UTC)


class Site:
    """A database of django-celery-beat, a store of Rota, and the processes of both."""

    def __init__(self, folder: Path, items: dict[str, str | int]) -> None:
        self.server = running_server("postgres").url()
        self.name = f"beat_{os.getpid()}"
        with closing(psycopg.connect(self.server, autocommit=True)) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {self.name}")
        self.database = urlsplit(self.server)._replace(path=f"/{self.name}").geturl()
        self.place = fresh_place("postgres", folder)
        self._settings = {
            "BEAT_DATABASE": self.database,
            "BEAT_BROKER": running_server("redis").url(),
            "BEAT_LOOP": "1",
            "ROTA_SITE_STORE": self.place.url,
            "ROTA_SITE_NAMESPACE": self.place.namespace,
            "ROTA_LEASE": "2s",
        }
        words = [sys.executable, "beat_site.py", "make", *(f"{name}={said}" for name, said in items.items())]
        made = subprocess.run(
            words, cwd=HERE, env={**os.environ, **self._settings}, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stderr
        self.connection = psycopg.connect(self.database, autocommit=True, row_factory=dict_row)
        self.children: dict[str, Child] = {}

    def start(self, role: str) -> Child:
        options = ["--pidfile="] if role == "beat" else ["-P", "solo", "--without-gossip", "--without-mingle"]
        celery = ["-m", "celery", "-A", "beat_site", role, "-l", "INFO", *options]
        child = (
            Child(["take_over_child.py", "node"], HERE, "2s", self._settings)
            if role == "node"
            else Child(celery, HERE, "2s", self._settings, start=fresh_python)
        )
        self.children[role] = child
        return child

    def restart(self, role: str) -> None:
        """Kill it at a time when nothing is on its way, and start it again."""
        wait_until(self.is_quiet, "a moment without a run")
        self.children[role].signal(signal.SIGKILL)
        self.children[role].close()
        self.start(role)

    def command(self, *words: str, point: str = "-") -> Child:
        return Child(["take_over_child.py", "command", point, *words], HERE, "2s", self._settings)

    def run(self, *words: str, point: str = "-") -> str:
        """Run a command to its end, or to the point where it kills itself."""
        child = self.command(*words, point=point)
        code = child.end()
        assert code == (0 if point == "-" else -signal.SIGKILL), child.output
        child.close()
        return child.output

    def rows(self) -> dict[str, dict]:
        found = self.connection.execute("SELECT * FROM django_celery_beat_periodictask WHERE task = 'shop.tick'")
        return {row["name"]: row for row in found}

    def runs(self, system: str, name: str) -> list[dict]:
        found = self.connection.execute(
            "SELECT key, at, deliveries FROM runs WHERE system = %s AND name = %s ORDER BY at", [system, name]
        )
        return list(found)

    def is_quiet(self) -> bool:
        """Whether nothing is about to be sent or run, or has just been: a kill then causes no second delivery."""
        now = datetime.now(UTC)
        known = [(name, row["last_run_at"]) for name, row in self.rows().items() if row["enabled"]]
        known += [(name, datetime.fromisoformat(run["key"])) for name in ITEMS for run in self.runs("rota", name)[-1:]]
        past = [(now - at).total_seconds() % ITEMS[name] / ITEMS[name] for name, at in known if at is not None]
        return all(QUIET < share < 1 - QUIET for share in past)

    def is_done(self) -> bool:
        """Whether every message of beat has run."""
        return all(sent == ran for sent, ran in self.counts().values())

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many messages beat has sent for each item, and how many have run."""
        return {name: (row["total_run_count"], len(self.runs("beat", name))) for name, row in self.rows().items()}

    def close(self) -> None:
        for child in self.children.values():
            child.close()
        self.connection.close()
        with closing(psycopg.connect(self.server, autocommit=True)) as connection:
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")


@pytest.fixture
def make_site(tmp_path):
    made: list[Site] = []

    def make(items: dict[str, str | int]) -> Site:
        made.append(Site(tmp_path, items))
        return made[-1]

    yield make
    for site in made:
        site.close()


def wait_for_runs(site: Site, system: str, name: str, more: int = 2) -> None:
    before = len(site.runs(system, name))
    wait_until(lambda: len(site.runs(system, name)) >= before + more, f"{more} runs of {name} by {system}")


def stop(site: Site) -> None:
    """End beat at a time when it sends nothing (it would count the message), then let what was sent or fired finish."""
    wait_until(site.is_quiet, "a moment without a run")
    site.children["beat"].signal(signal.SIGTERM)
    site.children["beat"].end()
    wait_until(site.is_done, f"the messages of beat, sent and run: {site.counts()}")
    site.children["node"].signal(signal.SIGTERM)
    site.children["node"].end()


def fired_slots(site: Site, name: str) -> list[datetime]:
    """The times that the ledger says were fired, each with a job that succeeded."""
    with site.place.opened() as store:
        found = store.list_many_occurrences([LedgerSpan(name, 0, int(FAR.timestamp()) * SECOND)], limit=200)[0].items
    assert {(one.outcome, one.reason) for one in found} <= {("succeeded", ""), ("skipped", "disabled")}
    return [datetime_of(one.through_at) for one in found if one.outcome == "succeeded"]


def record_of(site: Site, name: str):
    with site.place.opened() as store:
        (entry,) = store.get_entries(KIND, [name])
    return unpack(entry)


def check_continuity(site: Site, name: str) -> None:
    """Rota ran exactly the times after beat's last run, each once, and beat ran all others.

    Each run has its message or its time as its key. A second delivery of one of them, which the kill of a worker may
    cause, is no second run.
    """
    row, every = site.rows()[name], timedelta(seconds=ITEMS[name])
    ours, theirs = site.runs("rota", name), site.runs("beat", name)
    slots = sorted(datetime.fromisoformat(run["key"]) for run in ours)
    assert slots == fired_slots(site, name)
    assert [later - slot for slot, later in pairwise(slots)] == [every] * (len(slots) - 1)
    assert len(theirs) == row["total_run_count"]
    record = record_of(site, name)
    if record.step == "taken":
        assert not row["enabled"]
        assert row["last_run_at"] == datetime_of(record.through)  # beat's own word on its last message
        assert slots[0].timestamp() == math.ceil((row["last_run_at"] + every).timestamp())
        assert theirs[-1]["at"] < slots[0]
    else:
        assert (record.step, row["enabled"]) == ("back", True)
        assert slots[-1] == datetime_of(record.through)
        after = [run["at"] for run in theirs if run["at"] > slots[-1]]
        assert after[0] >= slots[-1] + every
        assert not [run for run in theirs if slots[0] <= run["at"] <= slots[-1]]


def test_items_move_to_rota_and_back_under_kills_and_none_runs_twice_or_is_missed(make_site):
    site = make_site(ITEMS)
    for role in ("beat", "worker", "node"):
        site.start(role)
    for name in ITEMS:
        wait_for_runs(site, "beat", name, 1)
    for point in ("take.recorded", "take.held", "take.answered"):
        site.run("--take-over", "--only", "a", point=point)
    waiting = site.command("--take-over", "--only", "b", "--only", "a")  # finishes a, and b while beat dies
    waiting.wait_for("a  taken")
    waiting.wait_for("take.held")
    site.restart("beat")
    assert waiting.end() == 0, waiting.output
    waiting.close()
    for point in ("take.decided", "take.switched", "take.off", "take.enabled"):
        site.run("--take-over", "--only", "c", point=point)
    site.restart("worker")
    site.restart("node")
    assert "c  taken" in site.run("--take-over")
    for name in ITEMS:
        wait_for_runs(site, "rota", name, 1)
    for point in ("back.disabled", "back.recorded", "back.switched"):
        site.run("--give-back", "--only", "a", point=point)
    assert "a  back" in site.run("--give-back", "--only", "a")
    wait_for_runs(site, "beat", "a")
    wait_for_runs(site, "rota", "c")
    stop(site)
    for name in ITEMS:
        check_continuity(site, name)
    assert not site.connection.execute(
        "SELECT 1 FROM django_celery_beat_periodictask WHERE name LIKE 'rota%'"
    ).fetchall()
