"""--take-over and --give-back under kills, with a real beat, Celery worker, Redis and PostgreSQL."""

from __future__ import annotations

import math
import os
import random
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

from amounts import IS_SOAK
from every_store import fresh_place, running_server
from rota.importers.take_over import POINTS
from rota.importers.take_over_record import KIND, UNDER_WAY, unpack
from rota.model.micros import SECOND, datetime_of
from rota.store.contract import LedgerSpan

sys.path.append(str(Path(__file__).parents[1] / "processes"))  # for processes that start without importing

from kill_harness import Child, fresh_python, wait_until

HERE = Path(__file__).parent
ITEMS = {"a": 2, "b": 3, "c": 2}  # seconds between two runs
PERIODS = {**ITEMS, "minute": 60}
QUIET = 0.15  # of its interval, after and before each run: a kill hits nothing that is on its way
SOAK_FOR = timedelta(minutes=5)
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

    def finish_moves(self) -> None:
        """Run the commands again that were killed, in the direction that they had."""
        with self.place.opened() as store:
            left = [one for one in map(unpack, store.list_entries(KIND).items) if one.step in UNDER_WAY]
        for one in left:
            self.run("--give-back" if one.step in {"releasing", "returning"} else "--take-over", "--only", one.name)

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
        known += [
            (name, datetime.fromisoformat(run["key"])) for name in PERIODS for run in self.runs("rota", name)[-1:]
        ]
        past = [(now - at).total_seconds() % PERIODS[name] / PERIODS[name] for name, at in known if at is not None]
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
    """The times whose jobs succeeded, by the ledger. The end of the node may leave a last one queued."""
    with site.place.opened() as store:
        found = store.list_many_occurrences([LedgerSpan(name, 0, int(FAR.timestamp()) * SECOND)], limit=200)[0].items
    assert {(one.outcome, one.reason) for one in found[:-1]} <= {("succeeded", ""), ("skipped", "disabled")}
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


@pytest.mark.skipif(not IS_SOAK, reason="takes minutes: make soak")
def test_items_move_back_and_forth_for_minutes_under_random_kills(make_site):
    """With an item that runs every minute: each minute has one run, of either system."""
    chance = random.Random(int(os.environ.get("ROTA_TEST_SEED", "1")))
    site = make_site({**ITEMS, "minute": "*"})
    for role in ("beat", "worker", "node"):
        site.start(role)
    for name in ITEMS:
        wait_for_runs(site, "beat", name, 1)
    began = datetime.now(UTC)
    while datetime.now(UTC) < began + SOAK_FOR:
        words = [chance.choice(["--take-over", "--give-back"]), "--only", chance.choice(list(PERIODS))]
        child = site.command(*words, point=chance.choice([*POINTS, "-", "-"]))
        if chance.random() < 0.3:  # while it works
            site.restart(chance.choice(["beat", "worker", "node"]))
        assert child.end() in {0, -signal.SIGKILL}, child.output
        child.close()
        site.finish_moves()
    stop(site)
    for name in ITEMS:
        assert [datetime.fromisoformat(run["key"]) for run in by_slot(site, name)] == fired_slots(site, name)
    minutes = [run["at"].replace(second=0, microsecond=0) for run in site.runs("beat", "minute")]
    minutes += [datetime.fromisoformat(run["key"]) for run in site.runs("rota", "minute")]
    assert len(minutes) >= SOAK_FOR // timedelta(minutes=1)
    assert [later - at for at, later in pairwise(sorted(minutes))] == [timedelta(minutes=1)] * (len(minutes) - 1)


def by_slot(site: Site, name: str) -> list[dict]:
    return sorted(site.runs("rota", name), key=lambda run: run["key"])
