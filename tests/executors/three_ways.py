"""The same deeds three ways: in a thread, as a coroutine, in a process. What holds for one must hold for all."""

from __future__ import annotations

import logging
import os
import resource
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import msgspec

from rota import App, Secret, current_job

app = App("memory://", name="three-ways")
say = print  # what jobs do, and the linter forbids
once = app.task(retries=0)
apart = app.task(retries=0, executor="process")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    at: datetime


class Order(msgspec.Struct):
    id: UUID
    price: Decimal
    colour: Colour
    where: Point


ORDER = Order(UUID(int=7), Decimal("19.90"), Colour.BLUE, Point(3, datetime(2026, 2, 28, 1, 2, 3, 4, tzinfo=UTC)))


class Money:
    """A type of an app's own: neither JSON nor msgspec knows it."""

    def __init__(self, cents: int, currency: str) -> None:
        self.cents = cents
        self.currency = currency

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.cents, self.currency))

    def __str__(self) -> str:
        return f"{self.cents} {self.currency}"

    @classmethod
    def parse(cls, text: str) -> Money:
        cents, currency = text.split()
        return cls(int(cents), currency)


app.codec(Money, encode=str, decode=Money.parse)


@dataclass
class Bill:
    total: Money
    parts: list[Money]
    by_name: dict[str, Money | None]


def _pay(bill: Bill, *tips: Money, **more: Money) -> Bill:
    assert all(isinstance(part, Money) for part in (bill.total, *bill.parts, *tips, *more.values()))
    return Bill(bill.total, [*bill.parts, *tips, *more.values()], bill.by_name)


def _leak(code: str) -> None:
    say("printed", code)
    sys.stdout.buffer.write(f"written {code}\n".encode())
    logging.getLogger("shop").warning("logged %s", code)
    current_job.progress(1, 2, code)
    raise ValueError(f"no luck with {code!r}")


def _count_aloud(number: int) -> None:
    for line in range(number):
        say(line)


MIXED = 200  # lines of text and bytes


def _write_bytes() -> None:
    out = sys.stdout.buffer
    out.write("first ☕\n".encode())
    out.write("split \N{HOT BEVERAGE}".encode()[:8])  # half a character
    out.write("split \N{HOT BEVERAGE}\n".encode()[8:])
    out.write(b"\xff is no text\n")
    out.writelines([b"a\n", bytearray(b"b\n"), memoryview(b"c\n")])
    for number in range(MIXED):
        sys.stdout.write(f"text {number}")
        out.write(b" and bytes\n")
    out.flush()
    sys.stdout.flush()
    sys.stderr.buffer.write(b"trouble\n")
    sys.stderr.buffer.flush()


def _flood(megabytes: int) -> int:
    """Print much, and say by how many KiB this process grew at its highest."""
    say("the first line")
    before = _highest()
    block = "x" * 1023 + "\n"
    for _ in range(megabytes * 1024):
        sys.stdout.write(block)
    return _highest() - before


def _highest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _wait_for(gate: str) -> None:
    say("it has begun")
    sys.stdout.flush()
    while not Path(gate).exists():
        os.sched_yield()
    say("it goes on")


def _echo(order: Order, points: list[Point]) -> Order:
    assert isinstance(order, Order)
    assert all(isinstance(point, Point) for point in points)
    return msgspec.structs.replace(order, where=points[-1])


class Three:
    """A deed in its three ways, by the names of the executors."""

    def __init__(self, thread: Any, loop: Any, process: Any) -> None:
        self._ways = {"thread": thread, "loop": loop, "process": process}

    def __getitem__(self, way: str) -> Any:
        return self._ways[way]


@once
def count_in_a_thread(number: int) -> None:
    _count_aloud(number)


@once
async def count_on_the_loop(number: int) -> None:
    _count_aloud(number)


@apart
def count_apart(number: int) -> None:
    _count_aloud(number)


@once
def bytes_in_a_thread() -> None:
    _write_bytes()


@once
async def bytes_on_the_loop() -> None:
    _write_bytes()


@apart
def bytes_apart() -> None:
    _write_bytes()


@once
def flood_in_a_thread(megabytes: int) -> int:
    return _flood(megabytes)


@once
async def flood_on_the_loop(megabytes: int) -> int:
    return _flood(megabytes)


@apart
def flood_apart(megabytes: int) -> int:
    return _flood(megabytes)


@once
def wait_in_a_thread(gate: str) -> None:
    _wait_for(gate)


@once
async def wait_on_the_loop(gate: str) -> None:
    _wait_for(gate)


@apart
def wait_apart(gate: str) -> None:
    _wait_for(gate)


@once
def leak_in_a_thread(code: Annotated[str, Secret]) -> None:
    _leak(code)


@once
async def leak_on_the_loop(code: Annotated[str, Secret]) -> None:
    _leak(code)


@apart
def leak_apart(code: Annotated[str, Secret]) -> None:
    _leak(code)


@once
def pay_in_a_thread(bill: Bill, *tips: Money, **more: Money) -> Bill:
    return _pay(bill, *tips, **more)


@once
async def pay_on_the_loop(bill: Bill, *tips: Money, **more: Money) -> Bill:
    return _pay(bill, *tips, **more)


@apart
def pay_apart(bill: Bill, *tips: Money, **more: Money) -> Bill:
    return _pay(bill, *tips, **more)


@once
def echo_in_a_thread(order: Order, points: list[Point]) -> Order:
    return _echo(order, points)


@once
async def echo_on_the_loop(order: Order, points: list[Point]) -> Order:
    return _echo(order, points)


@apart
def echo_apart(order: Order, points: list[Point]) -> Order:
    return _echo(order, points)


COUNT = Three(count_in_a_thread, count_on_the_loop, count_apart)
BYTES = Three(bytes_in_a_thread, bytes_on_the_loop, bytes_apart)
FLOOD = Three(flood_in_a_thread, flood_on_the_loop, flood_apart)
WAIT = Three(wait_in_a_thread, wait_on_the_loop, wait_apart)
ECHO = Three(echo_in_a_thread, echo_on_the_loop, echo_apart)


@once
def forks_and_leaves() -> int:
    """A child of a thread's own: it ends by itself, as multiprocessing's and subprocess's do."""
    child = os.fork()
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@once
def forks_and_returns() -> int:
    """A child that comes back from the task as if it were the worker."""
    child = os.fork()
    if child == 0:
        return 7
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


PAY = Three(pay_in_a_thread, pay_on_the_loop, pay_apart)
LEAK = Three(leak_in_a_thread, leak_on_the_loop, leak_apart)
