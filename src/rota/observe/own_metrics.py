"""Counts the work of this process, from events: attempts, times, losses, skips. It starts at zero with the process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.model.schedules.schedule import PAUSED
from rota.model.schedules.slots import DISABLED, MISSED, OVERLAP, UNIQUE
from rota.observe.families import counter, gauge, histogram
from rota.observe.numbers import MOST_QUEUES, MOST_SCHEDULES, MOST_TASKS, Counts, FirstIds, Histograms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric

    from rota.engine.events import Event, Events
    from rota.engine.node import Node
    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change

RUN_TIMES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
DURATIONS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)  # fewer: there are many schedules
WAITS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
FINAL = ("succeeded", "failed", "cancelled")
REASONS = (OVERLAP, UNIQUE, PAUSED, DISABLED, MISSED, "coalesced")
STATUSES = (*FINAL, "skipped")
ENDS = ("succeeded", "failed", "retried")  # of attempts: the counters that begin at zero for every task of a worker
DOCUMENT_ENDS = {
    "document.done": "done",
    "document.failed": "failed",
    "document.ended": "ended",  # it was due after its end
    "document.locked_out": "locked_out",
}
MOST_SERVICES = 20  # there are nine


class OwnMetrics:
    """Handles the events of one app. Its handlers run inside the loops, so each does little."""

    def __init__(self, events: Events, node: Callable[[], Node | None], first: FirstIds) -> None:
        self._node = node
        self._first = first
        self._lock = threading.Lock()  # several threads emit at the same time
        self._attempts = Counts(MOST_TASKS)
        self._run_times = Histograms(RUN_TIMES, MOST_TASKS)
        self._waits = Histograms(WAITS, MOST_QUEUES)
        self._lateness = Histograms(WAITS, MOST_QUEUES)
        self._runs = Counts(MOST_SCHEDULES, first)
        self._durations = Histograms(DURATIONS, MOST_SCHEDULES, first)
        self._lock_failures = Counts(MOST_SCHEDULES, first)
        self._skipped = Counts(len(REASONS) + 1)
        self._documents = Counts(MOST_QUEUES)
        self._document_times = Histograms(RUN_TIMES, MOST_QUEUES)
        self._outages = Counts(MOST_SERVICES)
        self._faults = Counts(MOST_SERVICES)
        self._lost = self._refused = self._rescued = 0
        self._listen(events)

    def _listen(self, events: Events) -> None:
        events.count(self._on_settled)
        events.on("job.lost", self._on_loss)
        events.on("job.refused", self._on_refusal)
        events.on("job.rescued", self._on_rescue)
        events.on("schedule.skipped", self._on_skip)
        events.on("schedule.refused", self._on_unfired)
        for name in DOCUMENT_ENDS:
            events.on(name, self._on_document)
        events.on("store.unavailable", self._on_outage)
        events.on("service.failed", self._on_fault)

    # Handling events.

    def _on_settled(self, changes: list[Change], at: int) -> None:
        with self._lock:
            for change in changes:
                self._count(change, at)

    def _count(self, change: Change, at: int) -> None:
        job = change.job
        started_at = job.started_at or at
        outcome = "succeeded" if change.state is State.SUCCEEDED else _outcome(change)
        took = max(0, (change.finished_at or at) - started_at) / 1e6
        self._attempts.add(job.task, outcome)
        if outcome == "returned":
            return
        self._run_times.observe(job.task, took)
        self._waits.observe(job.queue, (started_at - (job.queued_at or job.created_at)) / 1e6)
        if job.schedule_id is not None:
            self._count_run(job, outcome, started_at, took)

    def _count_run(self, job: Job, outcome: str, started_at: int, took: float) -> None:
        """An attempt of a schedule's job has ended."""
        assert job.schedule_id is not None  # noqa: S101 - asked above
        if outcome in FINAL:
            self._runs.add(job.schedule_id, outcome)
            self._durations.observe(job.schedule_id, took)
        if job.attempts == 0 and job.fire_at is not None and job.made_by != "catchup":  # that is late by design
            self._lateness.observe(job.queue, max(0, started_at - job.fire_at) / 1e6)

    def _on_loss(self, _: Event) -> None:
        with self._lock:
            self._lost += 1

    def _on_refusal(self, _: Event) -> None:
        with self._lock:
            self._refused += 1

    def _on_rescue(self, event: Event) -> None:
        state, schedule_id = str(event.data["state"]), event.data["schedule_id"]
        with self._lock:
            self._rescued += 1
            if schedule_id is not None and state in FINAL:
                self._runs.add(schedule_id, state)

    def _on_skip(self, event: Event) -> None:
        with self._lock:
            self._runs.add(event.data["schedule_id"], "skipped", event.data["count"])
            for reason, count in event.data["reasons"].items():
                self._skipped.add(reason if reason in REASONS else "other", number=count)

    def _on_unfired(self, event: Event) -> None:
        with self._lock:
            self._lock_failures.add(event.data["schedule_id"])

    def _on_document(self, event: Event) -> None:
        data = event.data
        with self._lock:
            self._documents.add(data["queue"], DOCUMENT_ENDS[event.name])
            if "started_at" in data:
                self._document_times.observe(data["queue"], max(0, event.at - data["started_at"]) / 1e6)

    def _on_outage(self, event: Event) -> None:
        with self._lock:
            self._outages.add(event.data["service"])

    def _on_fault(self, event: Event) -> None:
        with self._lock:
            self._faults.add(event.data["service"])

    # Reading.

    def collect(self) -> Iterator[Metric]:
        """All families; prometheus_client's own word."""
        with self._lock:
            families = [*self._of_schedules(), *self._of_jobs(), *self._of_documents(), *self._of_faults()]
        yield from families
        yield from self._of_node()

    def _of_schedules(self) -> Iterator[Metric]:
        of = ("schedule_id",)
        yield counter(
            "scheduler_runs_total",
            "Runs of a schedule that ended here, and occurrences that were skipped here.",
            ("schedule_id", "status"),
            self._runs.items(self._first.known, STATUSES),
        )
        yield histogram(
            "scheduler_run_duration_seconds",
            "How long a schedule's runs took, from their start to their end.",
            "schedule_id",
            self._durations,
        )
        yield counter(
            "scheduler_lock_failures_total",
            "Firings that the store refused because another came first, or could not take.",
            of,
            self._lock_failures.items(self._first.known),
        )
        yield counter(
            "rota_schedule_skipped_total",
            "Occurrences that made no job, by reason.",
            ("reason",),
            self._skipped.items(REASONS),
        )
        yield histogram(
            "rota_schedule_lateness_seconds",
            "How long after its nominal time a schedule's job began; jitter counts, what is caught up does not.",
            "queue",
            self._lateness,
        )

    def _of_jobs(self) -> Iterator[Metric]:
        yield counter(
            "rota_job_attempts_total",
            "Attempts that ended here.",
            ("task", "outcome"),
            self._attempts.items(self._tasks(), ENDS),
        )
        yield histogram("rota_job_run_seconds", "How long attempts took.", "task", self._run_times)
        yield histogram("rota_job_wait_seconds", "How long jobs were ready before they began.", "queue", self._waits)

    def _of_documents(self) -> Iterator[Metric]:
        yield counter(
            "rota_documents_total",
            "Documents of a queue whose run ended here, by how it ended.",
            ("queue", "outcome"),
            self._documents.items(),
        )
        yield histogram(
            "rota_document_run_seconds", "How long handlers of documents took.", "queue", self._document_times
        )

    def _tasks(self) -> tuple[str, ...]:
        """The tasks that this process may run, if it is a worker."""
        node = self._node()
        return () if node is None or node.worker is None else node.tasks

    def _of_faults(self) -> Iterator[Metric]:
        alone = [
            ("rota_lease_losses_total", "Jobs whose lease was lost while they ran here.", self._lost),
            ("rota_refused_writes_total", "Reports that the store refused: they came too late.", self._refused),
            ("rota_jobs_rescued_total", "Jobs that this node took back from workers that were lost.", self._rescued),
        ]
        for name, text, number in alone:
            yield counter(name, text, (), [((), number)])
        of = ("service",)
        node = self._node()
        names = [] if node is None else [service.name for service in node.services]
        text = "How often the store was out of reach."
        yield counter("rota_store_outages_total", text, of, self._outages.items(names))
        text = "Errors of a service's own; it went on."
        yield counter("rota_service_failures_total", text, of, self._faults.items(names))

    def _of_node(self) -> Iterator[Metric]:
        node = self._node()
        if node is None:
            return
        turning = {(service.name,): float(service.is_turning) for service in node.services}
        yield gauge("rota_loop_healthy", "Whether a service's loop has turned lately.", ("service",), turning)
        if node.worker is None:
            return
        slots = node.settings.work.concurrency
        running = sum(not run.is_over for run in list(node.worker.runs.values()))
        numbers = [
            ("rota_worker_slots", "Jobs that this worker runs at once.", slots),
            ("rota_worker_slots_in_use", "Slots of this worker that are taken.", min(slots, running)),
            ("rota_worker_slots_stuck", "Slots that still run what was given up.", node.stuck),
        ]
        for name, text, number in numbers:
            yield gauge(name, text, (), {(): number})


def _outcome(change: Change) -> str:
    """How an attempt ended, in one word of a few."""
    job = change.job
    if change.state.is_final:
        return change.state.value
    if change.failures > job.failures:
        return "retried"
    if change.deaths > job.deaths:
        return "died"
    return "snoozed" if change.attempts > job.attempts else "returned"
