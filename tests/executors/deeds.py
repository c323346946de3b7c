"""Deeds: tasks that run in processes of their own, the good ones and the bad ones."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

from rota import App, Cancel, Retry, Snooze, current_job

app = App("memory://")
say = print  # what jobs do, and the linter forbids
apart = app.task(executor="process", retries=0)


def leave_word(path: str) -> None:
    """Tell the test that the task is on: its pid, in a file that appears at once and whole."""
    Path(f"{path}.new").write_text(str(os.getpid()))
    Path(f"{path}.new").rename(path)


@apart
def add(a: int, b: int) -> int:
    return a + b


@apart
def who() -> int:
    return os.getpid()


@apart
def parent_of() -> list[int]:
    return [os.getpid(), os.getppid(), os.getsid(0)]


@apart
def about_me() -> dict[str, object]:
    nominal = current_job.occurrence
    return {
        "id": current_job.id,
        "attempt": current_job.attempt,
        "meta": current_job.meta,
        "schedule_id": current_job.schedule_id,
        "occurrence": nominal.isoformat() if nominal else None,
        "cancelled": current_job.cancelled,
    }


@apart
def raises(kind: str) -> None:
    match kind:
        case "retry":
            raise Retry("not yet", after="5s")
        case "snooze":
            raise Snooze(after="1h")
        case "cancel":
            raise Cancel("the order is gone")
        case "exit":
            sys.exit(3)
        case _:
            raise ValueError(kind)


@apart
def returns_an_object() -> object:
    return object()


@apart
def talks() -> None:
    say("hello")
    say("trouble", file=sys.stderr)
    logging.getLogger("shop").warning("careful")
    logging.getLogger("shop").error("broken")
    say("bye")


@apart
def talks_below_python() -> None:
    subprocess.run(["/bin/sh", "-c", "echo from a shell; echo its trouble >&2"], check=True)
    ctypes.CDLL(None).puts(b"from C")
    os.write(1, b"from a descriptor\n")
    sys.stdout.buffer.write("b\xfctes \xff\n".encode("latin-1"))


@apart
def closes_stdout() -> None:
    say("before")
    sys.stdout.close()
    os.close(1)
    say("after", end="")


@apart
def floods() -> int:
    block = "x" * 1023 + "\n"
    for _ in range(50):
        os.write(2, block.encode() * 1024)
        say(block * 1024, end="")
    return 100


@apart
def hangs(path: str) -> None:
    say("hanging")
    leave_word(path)
    Event().wait()


@apart
def starts_another(path: str) -> None:
    other = subprocess.Popen(["/bin/sleep", "1000"])
    Path(f"{path}.new").write_text(str(other.pid))
    Path(f"{path}.new").rename(path)
    other.wait()


@apart
def ignores_sigterm(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hangs(path)


@apart
def looks_whether_cancelled(path: str) -> str:
    leave_word(path)
    while not current_job.cancelled:
        time.sleep(0.01)
    return "saved"


@apart
def cleans_up(path: str) -> None:
    try:
        hangs(path)
    finally:
        Path(path).with_suffix(".clean").touch()


@app.task(executor="process", retries=0, memory="150MB")
def eats(path: str) -> None:
    hoard = [bytearray(os.urandom(1 << 20)) for _ in range(250)]
    leave_word(path)
    Event().wait(len(hoard))


@apart
def grows() -> int:
    app.hoard = bytearray(os.urandom(1 << 20)) * 100  # type: ignore[attr-defined]
    return os.getpid()


@apart
def exits(code: int) -> None:
    say("about to go", end="")
    os._exit(code)


@apart
def dies_by(number: int) -> None:
    os.kill(os.getpid(), number)
    Event().wait()


@apart
def forks(path: str) -> str:
    child = os.fork()
    if child == 0:
        say("from the fork")
        if path:
            leave_word(path)
            Event().wait()
        return "the fork's own result"
    if not path:
        os.waitpid(child, 0)
    return "the parent's result"


@apart
def closes_everything() -> None:
    os.closerange(3, 256)
    say("anybody there?")


@apart
def holds_the_interpreter() -> int:
    ctypes.PyDLL(None).sleep(2)  # a PyDLL keeps the interpreter's lock
    return 1


@apart
def enqueues() -> str:
    return add.enqueue(1, 2).id


@apart
def refuses_a_transaction() -> None:
    current_job.finish_in(object())


@app.task
def in_a_thread() -> int:
    return os.getpid()


@apart
def walks() -> None:
    current_job.progress(2, 5, "on its way")
