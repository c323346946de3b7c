"""A system that has grown: so many ended jobs of ten days, as many that wait, as many schedules with audit records.

`Grown.reads()` are the lists, counts and commands that people use; `Grown.acts()` are the writes of producers, workers
and upkeep. Both do the same whatever the size is.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import islice
from random import Random

from msgspec.structs import replace

from bench.lists import BULK, DAY, OF_SCHEDULE_EVERY, SCHEDULE, Archive
from bench.measure import Contender, again
from bench.wakeup import far, progress
from bench.weigh import KEEP_ALL
from rota import cron, every, once
from rota.app import internals
from rota.cli.checks import Examination, examine
from rota.engine.events import Events
from rota.engine.store_clock import StoreClock
from rota.engine.upkeep.tenant_sync import TenantSync
from rota.engine.upkeep.trimmer import Trimmer
from rota.inspector.coming import next_hour, next_runs
from rota.inspector.facts.agenda import agenda_page
from rota.inspector.facts.failure import read_failures
from rota.inspector.facts.queue import queues_facts
from rota.inspector.facts.series import read_series
from rota.inspector.facts.stats import read_stats
from rota.inspector.health import check_work
from rota.inspector.job_counts import count_by_state
from rota.inspector.ledger import newest_occurrences
from rota.inspector.schedule_index import read_briefs
from rota.inspector.search import search_from, search_jobs
from rota.inspector.standing import read_schedules, read_standing
from rota.model.audit_record import AuditRecord, subject_of
from rota.model.jobs.job import FINAL, Job, new_id
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import Change, settle
from rota.model.micros import SECOND, datetime_of
from rota.model.schedules.edit import Edit
from rota.model.schedules.schedule import Schedule
from rota.store.contract import AuditFilter, Exchange, JobFilter, Node, Retention, ScheduleFilter
from rota.tasks.task import Request

QUEUE, LATER = "line", "later"  # of the jobs that wait, and of those that wait for a time
BATCH, MANY, PRUNED = 100, 1_000, 500
WRITTEN = 2_000  # schedules at once
DUE, OF_TENANT = 10, 100

Read = Callable[[], object]


class Grown(Archive):
    """One namespace of one size."""

    def __init__(self, url: str, namespace: str, size: int) -> None:
        super().__init__(url, namespace, size)
        self.url, self.namespace = url, namespace
        self.task = self.app.task(name="noop", queue=QUEUE)(lambda: None)
        self.claimed = list[Job]()
        for first in range(0, size, BULK):
            self.add(min(BULK, size - first))
        for first in range(0, size // 10, BULK):
            self.add_later(min(BULK, size // 10 - first), self.end + 300 * DAY)
        self._add_schedules(size)
        self._add_nodes()
        self.waiting = self.store.list_jobs(JobFilter(queue=QUEUE), limit=1).items[0].id
        self.record = self.store.get_schedules([SCHEDULE])[0]
        self.vacuum()

    # Filling.

    def add(self, number: int) -> None:
        """Jobs that are ready."""
        self.app.enqueue_many([self.task.job() for _ in range(number)])

    def add_later(self, number: int, at: int) -> None:
        """Jobs that wait for one instant."""
        task = self.task.using(queue=LATER, at=datetime_of(at))
        self.app.enqueue_many([task.job() for _ in range(number)])

    def _add_schedules(self, size: int) -> None:
        """Ten are due each minute, a hundred are a tenant's, one has had jobs for ten days; the others are far away."""
        put, job = self.app.schedules.put_many, self.task.job()
        put(((f"due-{n}", job, cron("* * * * *")) for n in range(DUE)), overlap="allow")
        put([(SCHEDULE, job, every(timedelta(seconds=10 * 86_400 * OF_SCHEDULE_EVERY // size)))])
        self.app.schedules.pause(SCHEDULE, reason="its past alone is read")
        self.app.tenants.put("acme", tz="Asia/Tokyo")
        put(((f"acme-{n}", job, once(far(n))) for n in range(OF_TENANT)), tenant="acme")
        put([("far-0", job, once(far(0)))])
        self._add_far_schedules(size)
        (made,) = self.store.get_schedules([SCHEDULE])
        older = replace(made, created_at=self.start, version=made.version + 1)
        self.store.edit_schedules([Edit(after=older, expect_version=made.version, expect_created_at=made.created_at)])

    def _add_far_schedules(self, size: int) -> None:
        """By edits like the first one's: they differ in name and time, which need not be worked out a million times."""
        (first,) = self.store.get_schedules(["far-0"])
        (audit,) = self.store.list_audit_records(AuditFilter(subject=subject_of("schedule", "far-0"))).items
        new = partial(new_id, Random())
        edits = (_far_schedule(first, audit, n, new(audit.at)) for n in range(1, size))
        for done in range(0, size, WRITTEN):
            self.store.edit_schedules(list(islice(edits, WRITTEN)))
            if done % BULK == 0:
                progress(done, size)

    def _add_nodes(self) -> None:
        for number in range(3):
            node = Node(
                id=f"bench-{number}",
                host="bench",
                pid=number,
                roles=("worker", "scheduler"),
                queues=("default", "mail", "rare", QUEUE, LATER),
                tasks=("noop", "mail.send", "mail.sort", "pay", "ship", "rare.one"),
                concurrency=16,
            )
            self.store.record_heartbeat(node)

    # What is read.

    def reads(self) -> dict[str, Read]:
        """By name."""
        store, app = self.store, self.app
        since, until = datetime_of(self.start), datetime_of(self.end)
        subject = AuditFilter(subject=subject_of("schedule", "far-7"))
        early = AuditFilter(until=store.get_schedules(["due-0"])[0].created_at + SECOND)
        return {
            **super().reads(),
            "search by an argument": partial(self._search, "args.0:-1"),
            "search by attempts": partial(self._search, "attempts:>1"),
            "search by a task and an argument": partial(self._search, "task:pay args.0:2"),
            "tabs of a task's jobs": lambda: count_by_state(store, JobFilter(task="pay"), store.list_queues()),
            "a job": lambda: app.jobs.get(self.waiting),
            "schedules": store.list_schedules,
            "schedules, from the middle": lambda: store.list_schedules(cursor="far-5"),
            "schedules of a tenant": lambda: store.list_schedules(ScheduleFilter(tenant="acme")),
            "a schedule": lambda: app.schedules.get(SCHEDULE),
            "occurrences": lambda: app.schedules.occurrences(SCHEDULE, since, until),
            "occurrences, the newest": lambda: newest_occurrences(store, self.record, self.end, 30),
            "audit": lambda: store.list_audit_records(AuditFilter()),
            "audit of a schedule": lambda: store.list_audit_records(subject),
            "audit of an early time": lambda: store.list_audit_records(early),
            "nodes": store.list_nodes,
            "queues, with workers and pauses": lambda: queues_facts(store, store.list_queues()),
            "stats": lambda: read_stats(store),
            "stats --last": lambda: read_series(store, timedelta(days=1)),
            "failures, by cause": lambda: read_failures(store),
            "next runs": lambda: next_runs(store),
            "next hour": lambda: next_hour(store),
            "health": lambda: check_work(store, store.list_nodes()),
            "first page": lambda: read_standing(store, read_schedules(store)),
            "why, a schedule": lambda: app.schedules.why(SCHEDULE),
            "why, a time of a schedule": lambda: app.schedules.why(SCHEDULE, datetime_of(self.start + 5 * DAY)),
            "why, a job": lambda: app.jobs.why(self.waiting),
            "doctor": lambda: list(examine(Examination(store, app))),
        }

    def _search(self, text: str) -> object:
        inner = internals(self.app)
        search = search_from(text, self.end)
        named = inner.registry.parameters_of
        return search_jobs(self.store, search, inner.redaction, named, cursor=None, limit=50)

    def passes(self) -> dict[str, Read]:
        """By name, what reads all schedules. The page's index is read by a thread, once in a few seconds."""
        return {
            "index of the schedules page": lambda: sum(1 for _ in read_briefs(self.store)),
            "agenda": lambda: agenda_page(self.store, 7),
        }

    # What is written.

    def acts(self) -> dict[str, Contender]:
        """By name; what makes the system larger or smaller comes last."""
        return {
            f"claim {BATCH}": Contender(self._before_claim),
            f"settle {BATCH}": Contender(self._before_settle),
            "exchange": Contender(self._before_exchange),
            f"promote and claim {BATCH}": Contender(self._before_promotion),
            "rescue, nothing to do": again(lambda: self.store.expired_jobs(BATCH)),
            "upkeep, nothing to do": again(self._upkeep()),
            "enqueue one": again(self.task.enqueue),
            f"enqueue {MANY:,}": Contender(lambda: partial(self.app.enqueue_many, self._new_jobs())),
            f"prune {PRUNED}": Contender(self._before_prune),
        }

    def _new_jobs(self) -> list[Request]:
        return [self.task.job() for _ in range(MANY)]

    def changes(self) -> list[Change]:
        at = self.store.now()
        return [settle(job, Succeeded(), RetryPolicy(), at, 0.5) for job in self.claimed]

    def exchange(self, settled: list[Change], want: int = 0, queue: str = QUEUE) -> None:
        reply = self.store.exchange(Exchange(holder="bench", settled=settled, want=want, queues=(queue,)))
        if len(reply.claimed) != want or reply.refused:
            raise AssertionError(f"{len(reply.claimed)} claimed, {len(reply.refused)} refused")
        self.claimed = reply.claimed

    def _before_exchange(self) -> Read:
        self.add(BATCH)
        return partial(self.exchange, self.changes(), BATCH)

    def _before_claim(self) -> Read:
        self.add(BATCH)
        self.exchange(self.changes())
        return partial(self.exchange, [], BATCH)

    def _before_settle(self) -> Read:
        self.add(BATCH)
        self.exchange(self.changes(), BATCH)
        return partial(self.exchange, self.changes())

    def _before_promotion(self) -> Read:
        """Jobs for an instant that has passed when they are claimed; behind them are those of other times."""
        self.exchange(self.changes())
        at = self.store.now() + SECOND // 50
        self.add_later(BATCH, at)
        while self.store.now() <= at:
            pass
        return partial(self.exchange, [], BATCH, LATER)

    def _upkeep(self) -> Read:
        """What every node does: nothing is old enough, and no tenant or collection has changed."""
        events, clock = Events(), StoreClock(self.store.now)
        others = (
            TenantSync(self.store, events, clock, partial(new_id, Random(), self.end)),
            Trimmer(self.store, events, clock),
        )

        def turn() -> None:
            if self.store.prune(KEEP_ALL, PRUNED).jobs:
                raise AssertionError("jobs were pruned")
            for one in others:
                one.turn()

        return turn

    def _before_prune(self) -> Read:
        """As many jobs end as the lap removes: the oldest."""
        self.exchange(self.changes())
        for _ in range(PRUNED // BATCH):
            self._before_settle()()
        ended = sum(queue.counts.get(state, 0) for queue in self.store.list_queues() for state in FINAL)
        return partial(self._prune, replace(KEEP_ALL, most_finished=ended - PRUNED))

    def _prune(self, retention: Retention) -> None:
        if (number := self.store.prune(retention, PRUNED).jobs) != PRUNED:
            raise AssertionError(f"{number} jobs were pruned")


def _far_schedule(first: Schedule, audit: AuditRecord, number: int, record_id: str) -> Edit:
    at = far(number)
    trigger = str(once(at))
    return Edit(
        after=replace(
            first,
            id=f"far-{number}",
            spec=replace(first.spec, trigger=trigger),
            next_at=int(at.timestamp()) * SECOND,
        ),
        expect_version=0,
        audit=replace(
            audit,
            id=record_id,
            subject=subject_of("schedule", f"far-{number}"),
            after=audit.after.replace(first.spec.trigger, trigger),
        ),
    )
