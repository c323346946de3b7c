"""What a job prints and logs is its log: whole, in order, bounded, and nobody else's."""

from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from engine.stage import PATIENCE, Stage
from rota.engine.executors.capture import CaptureHandler, _Stream
from rota.engine.executors.job_log import LONGEST_LINE, MOST_BYTES, MOST_LINES, JobLog
from rota.engine.worker.log_keeper import LogKeeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota import Job

pytestmark = pytest.mark.usefixtures("captured")
say = print  # what jobs do, and the linter forbids


def log_of(stage: Stage, job: Job) -> list[tuple[str, str]]:
    lines, after = [], 0
    while page := stage.app.jobs.logs(job.id, after=after):
        lines += [(line.level, line.text) for line in page]
        after = page[-1].number
    return lines


def run(stage: Stage, function: Callable[[], object]) -> Job:
    job = stage.app.task(name="engine.talk", retries=0)(function).enqueue()
    stage.work_off(stage.a_worker())
    return job


def test_prints_errors_and_log_records_are_kept_in_order_with_their_levels(any_stage):
    def talk() -> None:
        say("hello")
        say("trouble", file=sys.stderr)
        logging.getLogger("shop").warning("careful with %s", "that")
        logging.getLogger("shop").error("broken")
        say("bye")

    job = run(any_stage, talk)
    assert log_of(any_stage, job) == [
        ("info", "hello"),
        ("error", "trouble"),
        ("warning", "careful with that"),
        ("error", "broken"),
        ("info", "bye"),
    ]


def test_log_records_of_all_levels_are_kept_where_the_logger_lets_them_through(stage):
    def talk() -> None:
        logger = logging.getLogger("shop.loud")
        logger.setLevel(logging.DEBUG)
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
            logger.log(level, "level %d", level)

    levels = [level for level, _ in log_of(stage, run(stage, talk))]
    assert levels == ["debug", "info", "warning", "error", "error"]


def test_a_logged_exception_brings_its_traceback(stage):
    def talk() -> None:
        try:
            int("no number")
        except ValueError:
            logging.getLogger("shop").exception("could not send")

    ((level, text),) = log_of(stage, run(stage, talk))
    assert level == "error"
    assert text.startswith("could not send\nTraceback")
    assert "ValueError: invalid literal" in text


def test_a_log_record_that_cannot_be_formatted_fails_no_job(stage, monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    odd = logging.getLogger("shop.odd")
    odd.propagate = False  # pytest's own handlers take no such record
    odd.addHandler(CaptureHandler())

    def talk() -> None:
        odd.warning("%d", "no number")
        say("after")

    job = run(stage, talk)
    assert (job.state, log_of(stage, job)) == ("succeeded", [("info", "after")])


def test_coroutines_that_run_side_by_side_have_each_their_own_log(any_stage):
    @any_stage.app.task
    async def talk(name: str) -> None:
        for number in range(20):
            say(name, number)
            await asyncio.sleep(0)

    jobs = {name: talk.enqueue(name) for name in "abc"}
    any_stage.work_off(any_stage.a_worker())
    for name, job in jobs.items():
        assert log_of(any_stage, job) == [("info", f"{name} {number}") for number in range(20)]


def test_threads_that_run_side_by_side_have_each_their_own_log(any_stage):
    barrier = threading.Barrier(3)

    @any_stage.app.task
    def talk(name: str) -> None:
        barrier.wait(PATIENCE)
        for number in range(100):
            say(name, number)

    jobs = {name: talk.enqueue(name) for name in "abc"}
    any_stage.work_off(any_stage.a_worker())
    for name, job in jobs.items():
        assert log_of(any_stage, job) == [("info", f"{name} {number}") for number in range(100)]


def test_what_nobodys_job_prints_goes_where_it_always_went(stage):
    elsewhere = io.StringIO()
    stream = _Stream(elsewhere, "info")

    def talk() -> None:
        say("the job's", file=stream)

    say("mine", file=stream)
    job = run(stage, talk)
    say("mine too", file=stream, flush=True)
    assert log_of(stage, job) == [("info", "the job's")]
    assert elsewhere.getvalue() == "mine\nmine too\n"
    stream.close()
    assert elsewhere.closed


def test_pieces_of_a_line_are_one_line(any_stage):
    def talk() -> None:
        say("one ", end="")
        say("and ", end="")
        say("the same")
        sys.stdout.write("a\nb\nc")
        sys.stdout.write("d\ne")

    job = run(any_stage, talk)
    assert log_of(any_stage, job) == [("info", text) for text in ("one and the same", "a", "b", "cd", "e")]


def test_lines_that_are_written_as_a_list_are_kept(any_stage):
    def talk() -> None:
        sys.stdout.writelines(["one\n", "two\n"])
        sys.stderr.writelines(["three"])

    job = run(any_stage, talk)
    assert log_of(any_stage, job) == [("info", "one"), ("info", "two"), ("error", "three")]


def test_a_line_that_was_begun_and_never_ended_is_kept(any_stage):
    def talk() -> None:
        sys.stderr.write("no end")
        say("no newline", end="")

    job = run(any_stage, talk)
    assert sorted(log_of(any_stage, job)) == [("error", "no end"), ("info", "no newline")]


def test_a_line_that_was_begun_is_kept_where_the_job_fails(stage):
    def talk() -> None:
        say("half a", end="")
        raise ValueError("no stamp")

    job = run(stage, talk)
    assert (job.state, log_of(stage, job)) == ("failed", [("info", "half a")])


def test_empty_lines_and_windows_endings_are_lines(stage):
    def talk() -> None:
        say()
        say("dos\r")
        say("")

    assert [text for _, text in log_of(stage, run(stage, talk))] == ["", "dos", ""]


def test_identical_lines_are_all_kept(any_stage):
    job = run(any_stage, lambda: [say("again") for _ in range(50)] and None)
    assert log_of(any_stage, job) == [("info", "again")] * 50


def test_lines_are_numbered_in_order_with_rising_times(any_stage):
    job = run(any_stage, lambda: [say(number) for number in range(150)] and None)
    lines = any_stage.app.jobs.logs(job.id)
    assert [int(line.text) for line in lines] == list(range(150))
    assert [line.number for line in lines] == sorted({line.number for line in lines})
    assert [line.at for line in lines] == sorted(line.at for line in lines)


def test_a_log_of_many_lines_ends_with_one_that_says_so(any_stage):
    job = run(any_stage, lambda: [say(number) for number in range(MOST_LINES + 500)] and None)
    lines = log_of(any_stage, job)
    assert len(lines) == MOST_LINES + 1
    assert lines[-2] == ("info", str(MOST_LINES - 1))
    assert lines[-1][0] == "system"
    assert "the log is full (10,000 lines or 1 MiB)" in lines[-1][1]
    assert job.state == "succeeded"


def test_exactly_as_many_lines_as_fit_need_no_last_word(stage):
    job = run(stage, lambda: [say(number) for number in range(MOST_LINES)] and None)
    lines = log_of(stage, job)
    assert (len(lines), lines[-1][0]) == (MOST_LINES, "info")


@pytest.mark.parametrize("letter", ["x", "é", "☕", "🦊"])
def test_a_log_of_many_bytes_ends_with_one_line_that_says_so(stage, letter):
    job = run(stage, lambda: [say(letter * 1000) for _ in range(2000)] and None)
    *lines, last = log_of(stage, job)
    assert last[0] == "system"
    assert "1 MiB" in last[1]
    size = sum(len(text.encode()) for _, text in lines)
    assert MOST_BYTES - 5000 < size <= MOST_BYTES


def test_a_line_that_never_ends_is_cut_into_pieces_and_bounded(stage):
    def talk() -> None:
        for _ in range(40):
            sys.stdout.write("x" * 50_000)

    lines = log_of(stage, run(stage, talk))
    assert all(len(text) <= LONGEST_LINE for _, text in lines)
    assert lines[-1][0] == "system"
    assert sum(len(text) for level, text in lines if level == "info") <= MOST_BYTES


def test_a_job_that_closes_its_streams_closes_nobody_elses(any_stage):
    def talk() -> None:
        say("before")
        sys.stdout.close()
        sys.stderr.close()
        say("after")
        say("still", file=sys.stderr, flush=True)

    job = run(any_stage, talk)
    assert job.state == "succeeded"
    assert log_of(any_stage, job) == [("info", "before"), ("info", "after"), ("error", "still")]
    say("and the process still prints", flush=True)


@pytest.mark.parametrize("garbage", ["\x00", "\ud800", "\x1b[31m", "a\x00b\udcff", "\u2028", "\x85", "\x0b\x0c", "🦊"])
def test_garbage_is_kept_as_text(any_stage, garbage):
    job = run(any_stage, lambda: say(f"<{garbage}>"))
    ((level, text),) = log_of(any_stage, job)
    assert (job.state, level) == ("succeeded", "info")
    assert (text[0], text[-1]) == ("<", ">")
    text.encode()


def test_bytes_are_shown_or_refused_as_python_does(any_stage):
    def talk() -> None:
        say(b"\xff\x00", bytearray(b"\xfe"), memoryview(b"x")[:0].tobytes())
        sys.stdout.write(b"\xff")

    job = run(any_stage, talk)
    assert log_of(any_stage, job) == [("info", r"b'\xff\x00' bytearray(b'\xfe') b''")]
    assert job.error.startswith("TypeError: write() argument must be str, not bytes")


def test_lines_can_be_read_while_the_job_runs(any_stage, gate):
    said = threading.Event()

    @any_stage.app.task
    def talk() -> None:
        say("first")
        say("half", end="")
        said.set()
        gate.wait(PATIENCE)
        say(" a line")

    job = talk.enqueue()
    worker = any_stage.a_worker()
    keeper = LogKeeper(any_stage.store, worker.runs, any_stage.events, worker.clock, holder=worker.holder)
    worker.turn()
    assert said.wait(PATIENCE)
    assert 0 < keeper.turn() < 1
    assert (job.state, log_of(any_stage, job)) == ("running", [("info", "first")])
    gate.set()
    any_stage.work_off(worker)
    assert log_of(any_stage, job) == [("info", "first"), ("info", "half a line")]


def test_lines_that_the_store_could_not_take_wait_for_the_next_try(any_stage, gate):
    said = threading.Event()

    @any_stage.app.task
    def talk() -> None:
        say("first")
        said.set()
        gate.wait(PATIENCE)
        say("second")

    job = talk.enqueue()
    worker = any_stage.a_worker()
    keeper = LogKeeper(any_stage.store, worker.runs, any_stage.events, worker.clock, holder=worker.holder)
    worker.turn()
    assert said.wait(PATIENCE)
    any_stage.store.fail("append_logs", 2)
    keeper._guarded_turn()
    gate.set()
    while worker.runs:
        worker._event.wait(0.05)
        worker._guarded_turn()
    assert log_of(any_stage, job) == [("info", "first"), ("info", "second")]


def test_a_job_that_ends_while_its_lines_are_being_written_keeps_their_order(stage, gate):
    said = threading.Event()

    @stage.app.task
    def talk() -> None:
        say("first")
        said.set()
        gate.wait(PATIENCE)
        say("second")

    job = talk.enqueue()
    worker = stage.a_worker()
    keeper = LogKeeper(stage.store, worker.runs, stage.events, worker.clock, holder=worker.holder)
    worker.turn()
    assert said.wait(PATIENCE)
    append = stage.still.append_logs
    settling = threading.Thread(target=lambda: stage.work_off(worker))

    def slowly(lines) -> None:
        """The store takes the first lines while the job ends and is settled."""
        stage.still.append_logs = append
        gate.set()
        settling.start()
        settling.join(0.3)  # done by then, unless it waits for this very call, as it should
        append(lines)

    stage.still.append_logs = slowly
    keeper.turn()
    settling.join(PATIENCE)
    assert log_of(stage, job) == [("info", "first"), ("info", "second")]


def test_a_log_that_cannot_be_written_at_all_keeps_no_job_from_ending(stage):
    def refuse(_lines) -> None:
        raise ValueError("this store takes no such line")

    stage.still.append_logs = refuse
    job = stage.app.task(name="engine.talk")(lambda: say("hello")).enqueue()
    worker = stage.a_worker()
    worker.turn()
    for _ in range(10):
        worker._event.wait(0.05)
        worker._guarded_turn()
    assert job.refresh().state == "succeeded"


def test_an_idle_log_keeper_and_quiet_jobs_cost_no_call(stage, gate):
    begun = threading.Event()

    @stage.app.task
    def hold() -> None:
        begun.set()
        gate.wait(PATIENCE)

    hold.enqueue()
    worker = stage.a_worker()
    keeper = LogKeeper(stage.store, worker.runs, stage.events, worker.clock, holder=worker.holder)
    worker.turn()
    assert begun.wait(PATIENCE)
    for _ in range(10):
        keeper.turn()
    gate.set()
    stage.work_off(worker)
    assert stage.store.calls["append_logs"] == 0


def test_every_attempt_adds_to_the_log(stage):
    @stage.app.task
    def talk() -> None:
        say("trying")
        raise ValueError("no stamp")

    job = talk.enqueue()
    worker = stage.a_worker()
    for _ in range(2):
        stage.work_off(worker)
        stage.skip(3600)
    assert log_of(stage, job) == [("info", "trying")] * 2


def test_what_a_coroutine_has_a_thread_do_is_in_its_log(any_stage):
    @any_stage.app.task
    async def talk() -> None:
        say("on the loop")
        await asyncio.to_thread(say, "in a thread")
        await asyncio.create_task(asyncio.sleep(0))

    job = talk.enqueue()
    any_stage.work_off(any_stage.a_worker())
    assert log_of(any_stage, job) == [("info", "on the loop"), ("info", "in a thread")]


@pytest.mark.parametrize("size", [1, 7, 200], ids=lambda size: f"{size} at a time")
@pytest.mark.parametrize("before", [LONGEST_LINE - 5, LONGEST_LINE - 1, LONGEST_LINE, 2 * LONGEST_LINE - 15])
def test_a_secret_is_hidden_where_a_long_line_is_cut(before, size):
    hunter = "hunter2-hunter2"
    log = JobLog(lambda: 0, lambda text: text.replace(hunter, "[redacted]"), lambda: len(hunter))
    text = "x" * before + hunter + "y" * LONGEST_LINE
    start, end = before - 100, before + 100
    pieces = [text[:start], *(text[at : min(at + size, end)] for at in range(start, end, size)), text[end:]]
    assert "".join(pieces) == text
    for piece in pieces:
        log.write("info", piece)
    lines = [line for _, _, line in log.take(is_over=True)]
    assert all(len(line) <= LONGEST_LINE for line in lines)
    assert "".join(lines) == text.replace(hunter, "[redacted]")
