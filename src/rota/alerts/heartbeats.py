"""Calls heartbeat URLs: of schedules when their runs begin and end, and of this node once a minute while it is well.

The service behind such a URL (healthchecks.io, or another that works like it) alerts when the calls stop. It is the
only way to learn that every node is gone.
"""

from __future__ import annotations

import logging
import re
import socket
from functools import partial
from typing import TYPE_CHECKING

from rota.alerts.sending_threads import SendingThreads
from rota.engine.service import Service
from rota.errors import AlertNotSent, BadOption
from rota.model.jobs.job import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.alerts.http_client import HttpClient
    from rota.alerts.plan import AlertPlan
    from rota.engine.events import Event, Events
    from rota.engine.store_clock import StoreClock
    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change

log = logging.getLogger("rota.alerts")

INTERVAL = 60.0  # seconds between two calls of a node
TRIES = 3  # one lost call must not look like a lost run
MOST_WAITING = 100  # calls of one URL; with more, the receiver does not answer, and the newest are dropped
_SLUG = re.compile(r"[^a-z0-9-]+")


class Pinger:
    """Calls URLs in threads of its own. A URL that does not answer is logged once, until it does."""

    def __init__(self, plan: AlertPlan, client: HttpClient) -> None:
        self._plan = plan
        self._client = client
        self.threads = SendingThreads("rota-heartbeat", each=1)  # a start is never called after its end
        self._silent: set[str] = set()  # names whose last call failed

    def ping(self, name: str, url: str, ending: str = "") -> None:
        if self.threads.unfinished(name) >= MOST_WAITING:
            self._note(name, f"more than {MOST_WAITING:,} calls wait")
            return
        self.threads.call(name, partial(self._call, name, url, ending))

    def _call(self, name: str, url: str, ending: str) -> None:
        problem = ""
        for _ in range(TRIES):
            try:
                status = self._client.send("GET", with_ending(self._plan.url(url), ending))
            except (AlertNotSent, BadOption) as err:
                problem = str(err)
                continue
            if 200 <= status < 300:
                self._silent.discard(name)
                return
            problem = f"it answered with status {status}"
        self._note(name, problem)

    def _note(self, name: str, problem: str) -> None:
        if name not in self._silent:
            log.warning("the heartbeat URL of %s could not be called: %s", name, problem)
        self._silent.add(name)


def with_ending(url: str, ending: str) -> str:
    """The URL with /start or /fail after its path, before its query."""
    if not ending:
        return url
    path, mark, query = url.partition("#")[0].partition("?")  # the part after # is not sent
    return f"{path.rstrip('/')}/{ending}{mark}{query}"


class ScheduleHeartbeats:
    """Calls the URLs of schedules when this node's worker begins and settles their runs."""

    def __init__(self, plan: AlertPlan, events: Events, pinger: Pinger) -> None:
        self._heartbeats = plan.heartbeats
        self._pinger = pinger
        events.count(self._on_settled)
        events.on("job.rescued", self._on_rescued)
        events.on("node.stopped", self._on_stopped)
        if any(one.start for one in self._heartbeats.values()):
            events.count_starts(self._on_started)

    def _on_started(self, jobs: list[Job], _at: int) -> None:
        for job in jobs:
            is_first = job.attempts == 0  # a retry continues the same run
            if is_first and job.schedule_id in self._heartbeats and self._heartbeats[job.schedule_id].start:
                self._ping(job.schedule_id, "start")

    def _on_settled(self, changes: list[Change], _at: int) -> None:
        for change in changes:
            schedule_id = change.job.schedule_id
            if schedule_id in self._heartbeats and change.state in {State.SUCCEEDED, State.FAILED}:
                self._ping(schedule_id, "" if change.state is State.SUCCEEDED else "fail")

    def _on_rescued(self, event: Event) -> None:
        """A run whose worker died once too often has failed."""
        schedule_id = event.data.get("schedule_id")
        if schedule_id in self._heartbeats and str(event.data.get("state")) == "failed":
            self._ping(schedule_id, "fail")

    def _on_stopped(self, _event: Event) -> None:
        """The process may end now, and with it the threads. A lost call would look like a lost run."""
        self._pinger.threads.wait_until_idle()

    def _ping(self, schedule_id: str, ending: str) -> None:
        self._pinger.ping(f"schedule {schedule_id}", self._heartbeats[schedule_id].url, ending)


class NodeHeartbeat(Service):
    """Calls the URL of the settings once a minute, if the loops of this node are running and reach the store."""

    name = "node heartbeat URL"

    def __init__(
        self, events: Events, clock: StoreClock, url: str, pinger: Pinger, is_well: Callable[[], bool]
    ) -> None:
        super().__init__(events, clock)
        self._url = url
        self._pinger = pinger
        self._is_well = is_well

    def turn(self) -> float:
        if self._is_well():
            self._pinger.ping("this node", self._url)
        return INTERVAL


def host_slug() -> str:
    """The name of this host in letters, digits and hyphens, as it may stand in a URL."""
    return _SLUG.sub("-", socket.gethostname().lower()).strip("-") or "host"
