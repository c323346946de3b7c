"""top: one snapshot in a pipe, a live screen on a terminal, and both ways to end it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from cli.processes import PATIENCE, environment
from rota.cli.top import _look
from rota.cli.top_facts import Pace, look
from rota.cli.top_screen import _bar, drawn
from rota.errors import StoreUnavailable
from rota.model.micros import SECOND
from rota.model.secrets.redaction import DEFAULT
from rota.store.contract import Node, QueueInfo

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """A command on a terminal of its own."""

    def __init__(self, *words: str, columns: int = 100, lines: int = 40) -> None:
        self._master, slave = pty.openpty()
        self.slave = slave
        env = environment(TERM="xterm", COLUMNS=str(columns), LINES=str(lines))
        del env["NO_COLOR"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rota", *words], stdin=slave, stdout=slave, stderr=slave, env=env
        )
        self.seen = ""

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self._master], [], [], 0.2)[0]:
                self.seen += os.read(self._master, 65536).decode("utf-8", "replace")

    def clear(self) -> None:
        self.seen = ""

    @property
    def text(self) -> str:
        return _CODES.sub("", self.seen)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    @property
    def echoes(self) -> bool:
        """Whether the terminal is as a shell wants it."""
        return bool(termios.tcgetattr(self.slave)[3] & termios.ICANON)

    def end(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            if select.select([self._master], [], [], 0.05)[0]:
                self.seen += os.read(self._master, 65536).decode("utf-8", "replace")
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self.slave)


@pytest.fixture
def screen(rota):
    """top on a terminal, on a store with one queue."""
    rota.enqueue("greet", "ann")
    screen = Screen("top", "jobs.py", "--every", "1s")
    try:
        screen.wait_for("QUEUE")
        yield screen
    finally:
        screen.close()


def test_a_pipe_gets_one_snapshot(rota, store):
    rota.sync()
    rota.enqueue("divide", "1", "0")
    rota.work()
    rota.enqueue("send", "ann")
    store.record_heartbeat(
        Node(id="n-1", host="h", pid=1, roles=("worker",), queues=("mail",), concurrency=4, running=1)
    )
    text = rota("top", "jobs.py").stdout
    assert re.search(r"^n-1 +alive +1 of 4 +worker +mail", text, re.MULTILINE)
    assert re.search(r"^mail +open +1 +0 +0 +\S+ m?s +- ", text, re.MULTILINE)
    assert re.search(r"^jobs.divide\(1, 0\) .*ZeroDivisionError: division by zero", text, re.MULTILINE)
    assert re.search(r"^report +in .*At 09:00 on Monday through Friday", text, re.MULTILINE)
    assert "no job is running" in text
    assert "tick" not in text  # it is disabled, and will not fire
    assert "\x1b" not in text


def test_the_snapshot_as_json(rota, store):
    rota.enqueue("greet", "ann")
    store.record_heartbeat(Node(id="old", host="h", pid=1, roles=("worker",)), now=store.now() - 60 * SECOND)
    facts = rota.data("top")
    assert facts["queues"][0] | {"oldest_at": None} == {
        "name": "default", "state": "open", "oldest_at": None, "per_second": None,
        "pause": None, "workers": 0, "slots": 0,
        "counts": {"queued": 1, **dict.fromkeys(
            ["running", "scheduled", "held", "succeeded", "failed", "cancelled"], 0)},
        "totals": dict.fromkeys(["succeeded", "failed", "cancelled"], 0),
    }  # fmt: skip
    assert [node["state"] for node in facts["nodes"]] == ["silent"]
    assert (facts["running"], facts["failures"], facts["schedules"]) == ([], [], [])


def test_a_new_store_says_what_there_is_none_of(rota):
    rota("migrate")
    text = rota("top", "--once").stdout
    for words in ("no node is running", "no queues yet", "no job is running", "no schedule will fire"):
        assert words in text


def test_it_makes_no_store(rota):
    assert "there is no store at" in rota("top", code=4).stderr
    assert not (rota.folder / ".rota").exists()


def test_what_runs_is_shown_with_its_age_and_how_far_it_is(rota, store, started):
    (rota.folder / "jobs.py").write_text(
        (rota.folder / "jobs.py").read_text().replace("    os.write", "    current_job.progress(7, 10)\n    os.write")
        + "\nfrom rota import current_job\n"
    )
    job_id = rota.enqueue("hold", "gate")
    process = started("run", "jobs.py")
    process.wait_for("holding")
    deadline = time.monotonic() + PATIENCE
    while not (store.get_jobs([job_id])[0].progress):
        assert time.monotonic() < deadline
    (running,) = rota.data("top")["running"]
    assert (running["id"], running["call"], running["progress"]) == (job_id, "jobs.hold('gate')", "7/10")
    assert running["seconds"] > 0
    assert "███████░░░ 7/10" in rota("top").stdout
    (rota.folder / "gate").touch()


def test_a_rate_is_what_ended_between_looks():
    pace = Pace()

    def at(seconds: float, ended: int) -> dict[str, float]:
        return pace.note(int(seconds * SECOND), [QueueInfo(name="q", totals={"succeeded": ended - 1, "failed": 1})])

    assert at(0, 100) == {}
    assert at(0, 100) == {}
    assert at(1, 150) == {"q": 50}
    assert at(2, 150) == {"q": 25}
    for second in range(3, 20):
        rate = at(second, 150)
    assert rate == {"q": 0}
    assert at(20, 50) == {"q": 0}  # what was counted anew is no negative pace


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (None, "-"),
        ("0/10", "░░░░░░░░░░ 0/10"),
        ("2.5/5 half", "█████░░░░░ 2.5/5 half"),
        ("12/10", "██████████ 12/10"),
        ("1/0", "1/0"),
        ("42", "42"),
        ("many/some", "many/some"),
    ],
)
def test_progress_is_a_bar_where_it_is_a_share(said, shown):
    assert _bar(said) == shown


def test_a_low_screen_says_how_much_it_does_not_show(rota, store):
    for number in range(30):
        rota.enqueue("greet", "ann", "--queue", f"q{number:02}")
    lines = drawn(look(store, Pace(), DEFAULT), "", 20).plain.split("\n")
    assert len(lines) <= 20
    assert "… and 23 more" in lines
    assert len(drawn(look(store, Pace(), DEFAULT), "", 100).plain.split("\n")) > 30


# On a terminal.


def test_q_ends_the_screen_and_leaves_the_terminal_as_it_was(screen):
    assert not screen.echoes
    screen.press(b"x")
    screen.press(b"q")
    assert screen.end() == 0
    assert screen.echoes
    assert "\x1b[?1049l" in screen.seen  # the other screen is left


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_as_cleanly(screen, number):
    screen.process.send_signal(number)
    assert screen.end() == 0
    assert screen.echoes
    assert "\x1b[?1049l" in screen.seen
    assert "Traceback" not in screen.text
    assert "error" not in screen.text


def test_the_screen_follows_what_happens(screen, rota):
    screen.clear()
    rota.enqueue("send", "bob")
    screen.wait_for("mail")
    screen.press(b"q")
    assert screen.end() == 0


def test_a_store_that_does_not_answer_leaves_the_last_look_on_the_screen(rota, store):
    rota.enqueue("greet", "ann")
    before = look(store, Pace(), DEFAULT)

    class Away:
        redaction = DEFAULT

        def open(self):
            raise StoreUnavailable("the file is locked")

    facts, trouble = _look(Away(), Pace(), before)
    assert facts is before
    assert trouble == "the store does not answer, this is old: the file is locked"
    assert trouble in drawn(facts, trouble, 40).plain
