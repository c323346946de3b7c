"""Makes random operations of a copy: seals, dumps and loads a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec

from rota.store.contract import LockRecord, LogLine, Part, QueueRecord, Seal
from rota.testing.differential.operation import Operation
from rota.testing.differential.walk import QUEUES
from rota.testing.store_suite.builders import MINUTE

if TYPE_CHECKING:
    from rota.store.contract import Record
    from rota.testing.differential.walk import Walk

PARTS: tuple[Part, ...] = get_args(Part)


def seal(walk: Walk) -> Operation | None:
    """Seal the store, rarely and for a few steps: on a sealed store the rest of the walk proves little."""
    if walk.chance(0.7):
        return None
    made = Seal(target="another ☕", id="move-1", is_done=walk.chance(0.2), at=walk.now)
    return Operation("seal", (made,))


def unseal(walk: Walk) -> Operation | None:
    return Operation("seal", (None,)) if walk.reference.sealed() or walk.chance(0.1) else None


def look_at_seal(walk: Walk) -> Operation:
    del walk
    return Operation("sealed")


def dump(walk: Walk) -> Operation:
    return Operation("dump", (walk.random.choice(PARTS),), {"limit": walk.random.choice((2, 7, 500))})


def load(walk: Walk) -> Operation | None:
    """Load records that the store has already, and some that are new."""
    part = walk.random.choice([part for part in PARTS if part != "logs"])  # log lines have numbers of the store's own
    known = walk.reference.dump(part).items
    some = walk.random.sample(known, min(3, len(known)))
    named = {record.name for record in some if isinstance(record, (QueueRecord, LockRecord))}
    new = [one for one in _new_records(walk) if not (isinstance(one, (QueueRecord, LockRecord)) and one.name in named)]
    return Operation("load", ([*some, *new],))


def _new_records(walk: Walk) -> list[Record]:
    job = walk.some_job()
    records: list[Record] = [
        QueueRecord(name=walk.random.choice((*QUEUES, "moved")), totals={"succeeded": walk.random.randrange(1, 20)}),
        LockRecord(name=walk.random.choice(("l1", "moved")), number=walk.random.randrange(1, 30)),
    ]
    if job is not None:
        alone = msgspec.structs.replace(
            job,
            id=walk.new_id(),
            key=None,
            key_until=0,
            slot=None,
            ahead=None,
            waits_for=None,
            schedule_id=None,
            fire_at=None,
            after_at=None,
        )
        line = LogLine(job_id=alone.id, at=walk.now - MINUTE, level="info", text="from afar", number=1)
        walk.logged[alone.id] = None
        records += [alone, line]
    walk.random.shuffle(records)
    return sorted(records, key=lambda record: isinstance(record, LogLine))  # a line comes after its job
