"""Does at random what people and programs do to jobs, schedules, tenants and queues, with the faults of nodes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rota.client.jobs import Jobs, StoreJobReader
from rota.client.schedules import Schedules
from rota.client.tenants import Tenants
from rota.errors import BadOption, NotFound, Refused, StoreUnavailable
from rota.model.jobs.job import NewJob, new_id
from rota.model.jobs.payload import Call, pack_call
from rota.model.micros import SECOND, datetime_of
from rota.model.schedules.schedule import Origin, ScheduleSpec
from rota.model.secrets.redaction import DEFAULT
from rota.store.contract import JobFilter
from rota.tasks.task import Registry, Task, make_options
from rota.testing.simulation.faults import Crash

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from rota.store.contract import Store
    from rota.tasks.job import Job
    from rota.tasks.task import Request
    from rota.testing.simulation.clock import SimulatedClock

_ANY = JobFilter()

QUEUES = ("default", "mail")
TRIGGERS = ("every 3s", "every 7s", "every 20s", "every 1m", "cron * * * * *", "cron */2 * * * *")
TENANTS = ("acme", "globex")
ZONES = ("UTC", "Asia/Tokyo", "America/Lima")
SCHEDULES = tuple(f"schedule{number}" for number in range(5))
RETRIES = {"steady": 3, "fragile": 0, "brief": 1, "timed": 2, "rare": 1}
EVERYWHERE = ("steady", "fragile", "brief", "timed")  # "rare" is known to some nodes only


def registry_of(names: tuple[str, ...]) -> Registry:
    """The tasks that a node knows."""
    registry = Registry()
    for name in names:
        options = make_options(
            retries=RETRIES[name], keep=name != "brief", timeout="5s" if name == "timed" else None, backoff="2s"
        )
        registry.add(Task(_nothing, name, options, _Nobody()))
    return registry


class Operation(NamedTuple):
    """An operation of an operator, and its relative frequency."""

    weight: int
    do: Callable[[], object]


class Operator:
    """A person or program that calls the API."""

    def __init__(self, store: Store, clock: SimulatedClock, random: Random) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        reader = StoreJobReader(lambda: store, _undecoded)
        self._jobs = Jobs(lambda: store, reader, random)
        self._schedules = Schedules(lambda: store, reader, self._new_id, "UTC", bring_declared=lambda: 0)
        self._tenants = Tenants(lambda: store, self._new_id)
        self._ids: list[str] = []
        operations = self._operations()
        self._weights = [operation.weight for operation in operations]
        self._actions = [operation.do for operation in operations]

    def act(self) -> None:
        """One random operation. It may be refused, or fail to reach the store."""
        (action,) = self._random.choices(self._actions, self._weights)
        self.attempt(action)

    def attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except (BadOption, Refused, NotFound, StoreUnavailable, Crash):
            return

    def prepare(self) -> None:
        """Make the first tenants, schedules and jobs."""
        for name in TENANTS:
            self.attempt(partial(self._tenants.put, name, tz="UTC"))
        for _ in range(4):
            self.attempt(self.put_schedule)
            self.attempt(self.enqueue)

    def open_everything(self) -> None:
        """End all pauses, so that every job can run."""
        for queue in QUEUES:
            self._store.pause_queue(queue, paused=False)
        for name in TENANTS:
            self.attempt(partial(self._tenants.resume, name))
        for name in SCHEDULES:
            self.attempt(partial(self._schedules.resume, name))
            self.attempt(partial(self._schedules.enable, name))

    def close_schedules(self) -> None:
        for name in SCHEDULES:
            self.attempt(partial(self._schedules.disable, name))

    def _operations(self) -> list[Operation]:
        store, schedules, jobs = self._store, self._schedules, self._jobs
        return [
            Operation(40, self.enqueue),
            Operation(9, lambda: jobs.cancel(self._some_job())),
            Operation(7, lambda: jobs.retry(self._some_job())),
            Operation(4, lambda: jobs.delete(self._some_job())),
            Operation(14, self.put_schedule),
            Operation(4, lambda: schedules.pause(self._some_schedule(), by="ann")),
            Operation(3, self._pause_for_a_while),
            Operation(6, lambda: schedules.resume(self._some_schedule())),
            Operation(2, lambda: schedules.disable(self._some_schedule())),
            Operation(4, lambda: schedules.enable(self._some_schedule())),
            Operation(2, lambda: schedules.remove(self._some_schedule())),
            Operation(3, lambda: schedules.run_now(self._some_schedule())),
            Operation(9, self._put_tenant),
            Operation(3, self._pause_tenant),
            Operation(5, lambda: self._tenants.resume(self._some_tenant())),
            Operation(1, lambda: store.pause_queue(self._random.choice(QUEUES), paused=True)),
            Operation(3, lambda: store.pause_queue(self._random.choice(QUEUES), paused=False)),
        ]

    def enqueue(self) -> None:
        jobs = [self._new_job() for _ in range(self._random.randint(1, 4))]
        self._ids = [*self._ids, *(job.id for job in jobs)][-40:]
        self._store.add_jobs(jobs)

    def put_schedule(self) -> None:
        self._schedules.register([(self._some_schedule(), self._spec())], Origin())

    def _pause_for_a_while(self) -> None:
        until = self._clock.now() + self._random.randint(1, 30) * SECOND
        self._schedules.pause(self._some_schedule(), until=datetime_of(until), reason="a while")

    def _put_tenant(self) -> None:
        random = self._random
        self._tenants.put(
            self._some_tenant(),
            tz=random.choice(ZONES),
            queue=random.choice((None, *QUEUES)),
            priority=random.choice((None, -5, 5)),
            by="ann",
        )

    def _pause_tenant(self) -> None:
        until = datetime_of(self._clock.now() + self._random.randint(1, 30) * SECOND)
        self._tenants.pause(self._some_tenant(), until=until if self._random.random() < 0.5 else None, by="ann")

    def _spec(self) -> ScheduleSpec:
        spec = self._own_spec()
        if self._random.random() < 0.5:
            return spec
        follows: dict[str, str | int] = {"queue": spec.queue, "priority": spec.priority}
        if spec.trigger.startswith("every"):  # the oracle knows no cron in another zone
            follows["tz"] = spec.tz
        return msgspec.structs.replace(spec, tenant=self._some_tenant(), follows=follows)

    def _own_spec(self) -> ScheduleSpec:
        random, now = self._random, self._clock.now()
        return ScheduleSpec(
            trigger=random.choice(TRIGGERS),
            task=random.choice(EVERYWHERE),
            queue=random.choice(QUEUES),
            priority=random.choice((-5, 0, 5)),
            key=f"key{random.randint(1, 5)}" if random.random() < 0.2 else "",
            key_for=random.choice((0, 0, 30 * SECOND)),
            overlap=random.choice(("skip", "allow", "queue", "cancel")),
            catchup=random.choice(("latest", "skip", "all")),
            catchup_limit=random.choice((2, 5, 100)),
            grace=random.choice((2, 10, 60)) * SECOND,
            jitter=random.choice((0, 0, 2 * SECOND)),
            start=now + random.randint(-20, 30) * SECOND if random.random() < 0.2 else None,
            end=now + random.randint(40, 90) * SECOND if random.random() < 0.2 else None,
            max_runs=random.randint(1, 12) if random.random() < 0.2 else None,
            run_on_start=random.random() < 0.2,
        )

    def _new_job(self) -> NewJob:
        random = self._random
        task = random.choice((*EVERYWHERE, "rare"))
        payload = b"not a payload" if random.random() < 0.02 else pack_call(Call(), what=task)
        has_key = random.random() < 0.4
        return NewJob(
            id=self._new_id(),
            task=task,
            payload=payload,
            queue=random.choice(QUEUES),
            priority=random.choice((-10, 0, 0, 10)),
            key=f"key{random.randint(1, 5)}" if has_key else None,
            key_for=random.choice((0, 0, 30 * SECOND)) if has_key else 0,
            delay=random.choice((0, 0, 0, 2 * SECOND, 15 * SECOND)),
        )

    def _some_job(self) -> str:
        """A recent job: one that it enqueued, or one that a schedule made."""
        recent = self._store.list_jobs(_ANY, limit=20).items if self._random.random() < 0.5 else []
        ids = [job.id for job in recent] or self._ids or ["nobody"]
        return self._random.choice(ids)

    def _some_tenant(self) -> str:
        return self._random.choice(TENANTS)

    def _some_schedule(self) -> str:
        return self._random.choice(SCHEDULES)

    def _new_id(self) -> str:
        return new_id(self._random, self._clock.now())


class _Nobody:
    """Simulated tasks enqueue nothing."""

    redaction = DEFAULT
    checks_types = False

    def send(self, requests: Sequence[Request]) -> list[Job[Any]]:
        raise NotImplementedError

    async def asend(self, requests: Sequence[Request]) -> list[Job[Any]]:
        raise NotImplementedError


def _nothing() -> None:
    """What every simulated task does: the executor decides how it ends."""


def _undecoded(task: str, result: bytes | None) -> None:
    """No result is read in a simulation."""
    del task, result
