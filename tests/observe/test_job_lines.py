"""Lines of started and succeeded jobs: written a batch at a time, and the same as a record each would be."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections import Counter

import msgspec
import pytest

from rota.cli import job_lines
from rota.cli.job_lines import write_settled, write_started
from rota.cli.target import load_target
from rota.cli.text_lines import TextLines
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.model.micros import SECOND
from rota.observe.json_lines import JsonLines
from rota.observe.line_handler import LineHandler
from unit.model.values import NOON, a_job

TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
FORMATTERS = {
    "text": TextLines(has_colours=False),
    "colours": TextLines(has_colours=True),
    "json": JsonLines(),
}
JOBS = {
    "usual": [a_job(), a_job(task="mail.read", queue="mail", priority=5), a_job(schedule_id="nightly")],
    "never started": [a_job(started_at=None)],
    "long": [a_job(started_at=NOON - 3_700 * SECOND), a_job(started_at=NOON - SECOND // 3)],
    "cancelled too late": [a_job(cancel_reason="not wanted any more")],
    "of other letters": [a_job(task="почта.送信"), a_job(task='"quoted"\\'), a_job(task="two\nlines")],
    "with a secret": [a_job(), a_job(id="password=hunter2"), a_job(task="https://ann:hunter2@mail/"), a_job()],
    "no Unicode": [a_job(task="mail.\udc80"), a_job()],
}


class Log:
    """The logger of job lines and those above it, with one handler of Rota's own. pytest adds some to the real ones."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.root = logging.RootLogger(logging.DEBUG)
        manager = logging.Manager(self.root)
        self.rota, self.logger = manager.getLogger("rota"), manager.getLogger("rota.job")
        self.stream = io.StringIO()
        self.handler = LineHandler(self.stream)
        self.handler.setFormatter(formatter)
        self.root.addHandler(self.handler)
        self.is_each = False  # whether lines came as records

    def lines(self) -> list[str]:
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return text.splitlines()

    def untimed(self) -> list[str]:
        found = self.lines()
        assert all(TIME.search(line) for line in found if line.startswith(("2", "{")))
        return [TIME.sub("T", line) for line in found]

    def emit_each(self) -> None:
        """As with a filter of the user's own, which sees every record."""
        self.handler.addFilter(self._note)

    def _note(self, _: logging.LogRecord) -> bool:
        self.is_each = True
        return True


@pytest.fixture
def log(request, monkeypatch):
    log = Log(getattr(request, "param", FORMATTERS["text"]))
    monkeypatch.setattr(job_lines, "job_log", log.logger)
    return log


def succeeded(jobs):
    return [settle(job, Succeeded(b"1"), RetryPolicy(), NOON, 0.0) for job in jobs]


@pytest.mark.parametrize("log", FORMATTERS.values(), ids=FORMATTERS.keys(), indirect=True)
@pytest.mark.parametrize("jobs", JOBS.values(), ids=JOBS.keys())
def test_a_batch_has_the_lines_that_a_record_for_each_job_would_have(log, jobs):
    write_started(jobs, NOON)
    write_settled(succeeded(jobs), NOON)
    together = log.untimed()
    log.emit_each()
    write_started(jobs, NOON)
    write_settled(succeeded(jobs), NOON)
    assert log.is_each
    assert together == log.untimed()
    assert together
    assert "hunter2" not in "".join(together)


def test_a_usual_batch_makes_no_record_for_each_job(log, monkeypatch):
    monkeypatch.setattr(log.handler, "emit", lambda record: pytest.fail(record.getMessage()))
    write_started(JOBS["usual"], NOON)
    write_settled(succeeded(JOBS["usual"]), NOON)
    assert len(log.lines()) == 2 * len(JOBS["usual"])


def test_only_jobs_that_succeeded_have_such_a_line(log):
    failed = settle(a_job(), Failed("ValueError: no"), RetryPolicy(), NOON, 0.0)
    write_settled([failed], NOON)
    assert log.lines() == []
    write_settled([failed, *succeeded([a_job(id="j1")])], NOON)
    assert [line.partition("rota.job: ")[2] for line in log.lines()] == ["job j1 (mail.send) succeeded in 10 s"]


def test_other_records_keep_their_place_between_batches(log):
    write_started([a_job(id="j1")], NOON)
    log.logger.warning("in between")
    write_settled(succeeded([a_job(id="j1")]), NOON)
    assert [line.partition("rota.job: ")[2] for line in log.lines()] == [
        "job j1 (mail.send) started, attempt 1",
        "in between",
        "job j1 (mail.send) succeeded in 10 s",
    ]


def test_a_level_that_is_raised_counts_at_once(log):
    log.logger.setLevel(logging.WARNING)
    write_started([a_job()], NOON)
    write_settled(succeeded([a_job()]), NOON)
    assert log.lines() == []


class Seen(logging.Handler):
    """A handler of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.mark.parametrize("which", ["root", "rota", "logger"])
def test_handlers_of_the_user_get_a_record_for_each_job(log, which):
    seen = Seen()
    getattr(log, which).addHandler(seen)
    write_settled(succeeded([a_job(id="j1"), a_job(id="j2", schedule_id="nightly")]), NOON)
    assert [record.args for record in seen.records] == [("j1", "mail.send", "10 s"), ("j2", "mail.send", "10 s")]
    fields = seen.records[1].rota
    assert (fields["event"], fields["job_id"], fields["schedule_id"]) == ("job.succeeded", "j2", "nightly")
    assert len(log.lines()) == 2


def test_code_that_replaces_a_part_of_logging_gets_a_record_for_each_job(log, monkeypatch):
    seen: list[str] = []

    def call_handlers(self, record):
        del self
        seen.append(record.getMessage())

    monkeypatch.setattr(logging.Logger, "callHandlers", call_handlers)
    write_settled(succeeded([a_job(), a_job()]), NOON)
    assert len(seen) == 2
    assert log.lines() == []


def test_a_record_factory_of_the_user_makes_a_record_for_each_job(log):
    made: list[object] = []

    def make(*args, **fields):
        made.append(args)
        return logging.LogRecord(*args, **fields)

    logging.setLogRecordFactory(make)
    try:
        write_settled(succeeded([a_job(), a_job()]), NOON)
    finally:
        logging.setLogRecordFactory(logging.LogRecord)
    assert len(made) == len(log.lines()) == 2


def test_a_formatter_of_the_user_gets_a_record_for_each_job(log):
    log.handler.setFormatter(logging.Formatter("OWN %(message)s"))
    write_settled(succeeded([a_job(id="j1")]), NOON)
    assert log.lines() == ["OWN job j1 (mail.send) succeeded in 10 s"]


def test_two_processes_write_each_job_once_and_no_line_is_broken(folder, started):
    del folder
    app = load_target("jobs.py").app
    greet = sys.modules["jobs"].greet
    ids = [job.id for job in app.enqueue_many([greet.job("ann") for _ in range(600)])]
    app.close()
    process = started(
        "worker", "jobs.py", "--processes", "2", "--until-empty", "--log-format", "json", "--log-level", "debug"
    )
    assert process.end() == 0
    pattern = re.compile(r"job (\w+) \(jobs\.greet\) (started|succeeded)")
    found = [pattern.findall(line) for line in process.lines if "jobs.greet) s" in line]
    assert {len(one) for one in found} == {1}
    told = Counter(one[0] for one in found)  # a worker may return a job that it has not begun, and it starts again
    assert [told[id_, "succeeded"] for id_ in ids] == [1] * len(ids)
    assert all(told[id_, "started"] for id_ in ids)
    assert all(msgspec.json.decode(line)["time"] for line in process.lines)
