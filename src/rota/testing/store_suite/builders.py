"""Builds jobs, specs, nodes and log lines with defaults, and names the instant at which the tests begin."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

from rota.model.jobs.job import NewJob
from rota.model.jobs.retry import Backoff, RetryPolicy
from rota.model.micros import SECOND
from rota.model.schedules.schedule import ScheduleSpec
from rota.store.contract import LogLine, Node

T0 = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
LEASE = 30 * SECOND
WORKER = "worker-1"
RIVAL = "worker-2"

_numbers = count(1)


def fresh_id() -> str:
    """An id that no other test, thread or process has, of the length that ids have."""
    return f"{os.getpid():08x}{next(_numbers):020x}"


def a_job(**fields: Any) -> NewJob:
    return NewJob(**{"id": fresh_id(), "task": "mail.send", "payload": b"[]", **fields})


def a_spec(**fields: Any) -> ScheduleSpec:
    """Every minute from its creation, without grace: each late minute counts as missed."""
    return ScheduleSpec(**{"trigger": "every 1m", "task": "mail.send", "grace": 0, **fields})


def a_policy(retries: int = 0) -> RetryPolicy:
    """A number of retries, ten seconds apart."""
    return RetryPolicy(retries=retries, backoff=Backoff(first=10 * SECOND, factor=1.0))


def a_node(node_id: str = "node-1", **fields: Any) -> Node:
    return Node(**{"id": node_id, "host": "here", "pid": 1, "roles": ("worker",), **fields})


def a_line(job_id: str, text: str, **fields: Any) -> LogLine:
    return LogLine(**{"job_id": job_id, "at": T0, "level": "info", "text": text, **fields})
