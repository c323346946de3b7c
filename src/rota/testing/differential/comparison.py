"""Does one random walk on several stores and reports the first difference."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.store.contract.moving import MovingVerbs
from rota.store.memory import MemoryStore
from rota.testing.differential import job_steps, moving_steps, other_steps, schedule_steps
from rota.testing.differential.answers import Raised, first_difference
from rota.testing.differential.compared_store import ComparedStore
from rota.testing.differential.operation import Operation
from rota.testing.differential.walk import SCHEDULES, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rota.store.contract import Store
    from rota.testing.differential.walk import Step

STEPS: tuple[Step, ...] = (
    *[job_steps.add] * 8,
    *[job_steps.work] * 20,
    *[job_steps.settle_under_a_wrong_number] * 2,
    *[job_steps.extend] * 3,
    *[job_steps.record_progress] * 2,
    *[job_steps.look_for_expired] * 2,
    *[job_steps.rescue_expired] * 4,
    *[job_steps.ask_to_stop] * 2,
    *[job_steps.cancel_by_hand] * 2,
    *[job_steps.retry] * 3,
    *[job_steps.delete] * 2,
    *[job_steps.get] * 2,
    *[job_steps.list_some] * 4,
    *[schedule_steps.make] * 3,
    *[schedule_steps.edit] * 4,
    *[schedule_steps.look_for_due] * 2,
    *[schedule_steps.fire] * 10,
    *[schedule_steps.fire_late] * 3,
    *[schedule_steps.fire_early] * 3,
    *[schedule_steps.list_occurrences] * 2,
    *(schedule_steps.get, schedule_steps.list_all),
    *[other_steps.pause_queue] * 2,
    *[other_steps.write_logs] * 2,
    *[other_steps.acquire_lock] * 2,
    *(other_steps.list_queues, other_steps.record_heartbeat, other_steps.forget_node, other_steps.list_nodes),
    *(other_steps.read_logs, other_steps.extend_lock),
    *[other_steps.edit_entries] * 2,
    *(other_steps.get_entries, other_steps.list_entries, other_steps.list_audit_records),
    *[other_steps.release_lock] * 2,
    *(other_steps.prune_by_age, other_steps.prune_lines, other_steps.prune_by_number),
    other_steps.ask_with_a_bad_cursor,
)
MOVING_STEPS: tuple[Step, ...] = (
    *(moving_steps.seal, moving_steps.unseal, moving_steps.unseal),
    *(moving_steps.look_at_seal, moving_steps.dump, moving_steps.load),
)
COMPARE_EVERY = 20  # steps between two comparisons of everything


class Difference(Struct, frozen=True, kw_only=True):
    """Where an answer of a store first differed from that of memory."""

    store: str
    step: int
    operation: Operation | None  # None: all answers agreed, and the state differs
    what: str
    error: str = ""

    @property
    def kind(self) -> tuple[str, str]:
        """What two differences have in common that count as the same: the verb, and the field without its position."""
        return self.operation.verb if self.operation else "", re.sub(r"\[\d+\]", "[]", self.what.partition(":")[0])

    def __str__(self) -> str:
        deed = f"to {self.operation}" if self.operation else "in all that can be read"
        error = f"\n  it raised: {self.error}" if self.error else ""
        return f"{self.store} differs at step {self.step} {deed}\n  {self.what}{error}"


class Comparison:
    """Several empty stores and a new memory store, to which they are compared."""

    def __init__(self, stores: Mapping[str, Store], *, look_every: int = COMPARE_EVERY) -> None:
        self.done: list[Operation] = []
        self.counts: Counter[str] = Counter()
        self._reference = ComparedStore("memory", MemoryStore())
        self._others = [ComparedStore(name, store) for name, store in stores.items()]
        self._look_every = look_every
        self._logged: dict[str, None] = {}

    def walk(self, seed: int, steps: int) -> Difference | None:
        """Do so many random operations; stops at the first difference."""
        can_move = all(type(other.store).dump is not MovingVerbs.dump for other in self._others)
        walk = Walk(seed, self._reference.store, (*STEPS, *MOVING_STEPS) if can_move else STEPS)
        for _ in range(steps):
            operation = walk.next()
            self._logged = walk.logged
            found = self._do(operation, then=walk.look)
            if found is not None:
                return found
        return self._compare_states()

    def replay(self, operations: Iterable[Operation]) -> Difference | None:
        """Do these operations. What they were decided on may be gone; then every store must refuse them."""
        for operation in operations:
            if operation.verb == "append_logs":
                self._logged.update((line.job_id, None) for line in operation.args[0])
            found = self._do(operation)
            if found is not None:
                return found
        return self._compare_states()

    def _do(self, operation: Operation, then: Callable[[Any], None] | None = None) -> Difference | None:
        self.done.append(operation)
        expected, reply = self._reference.do(operation)
        self._count(operation, expected, reply)
        for other in self._others:
            errors = len(other.errors)
            got, _ = other.do(operation)
            what = first_difference(expected, got)
            if what is not None:
                return self._difference(other, operation, what, other.errors[errors:])
        if then is not None:
            then(reply)
        is_time = len(self.done) % self._look_every == 0
        return self._compare_states() if is_time else None

    def _compare_states(self) -> Difference | None:
        expected = self._reference.state(SCHEDULES, list(self._logged)[-30:])
        for other in self._others:
            got = other.state(SCHEDULES, list(self._logged)[-30:])
            what = first_difference(expected, got)
            if what is not None:
                return self._difference(other, None, what, [])
        self.counts["whole states"] += 1
        return None

    def _difference(
        self, other: ComparedStore, operation: Operation | None, what: str, errors: Sequence[BaseException]
    ) -> Difference:
        error = "; ".join(f"{type(error).__name__}: {error}" for error in errors)
        return Difference(store=other.name, step=len(self.done), operation=operation, what=what, error=error)

    def _count(self, operation: Operation, expected: Any, reply: Any) -> None:
        """Count what was compared: a walk in which nothing fires or is refused proves little."""
        self.counts["answers"] += len(self._others)
        self.counts[operation.verb] += 1
        if isinstance(expected, Raised):
            self.counts["errors"] += 1
        elif operation.verb == "exchange":
            self.counts["claims"] += len(reply.claimed)
            self.counts["refused reports"] += len(reply.refused)
        elif operation.verb in {"rescue_jobs", "change_jobs"}:
            self.counts["refused changes"] += len(reply)
        elif operation.verb == "fire":
            self.counts["occurrences made"] += sum(len(fired.jobs) for fired in reply)
            self.counts["occurrences skipped"] += sum(fired.skipped for fired in reply)
            self.counts["refused firings"] += sum(not fired.is_accepted for fired in reply)
        elif operation.verb == "edit_schedules":
            self.counts["refused edits"] += len(reply)
