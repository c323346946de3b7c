"""Defines an operation: one call of a store's verb as a value that can be done again, on any store, and printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from rota.model.jobs.job import NewJob
from rota.model.jobs.settle import Change
from rota.model.schedules.edit import Edit
from rota.model.schedules.firing import Firing
from rota.store.contract import Exchange

LONGEST = 240  # characters of one operation when it is printed


class Operation(Struct, frozen=True):
    """A verb, its arguments, and its options; `now` is one of these."""

    verb: str
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.verb.startswith(("get_", "list_", "dump", "sealed", "expired_", "due_"))

    def __str__(self) -> str:
        words = [_brief(arg) for arg in self.args]
        words += [f"{name}={_brief(value)}" for name, value in self.options.items()]
        text = f"{self.verb}({', '.join(words)})"
        return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _brief(value: Any) -> str:
    """A value in a few words: what was decided, without all that it was decided on."""
    match value:
        case Change():
            was = f"{value.job.state}, lease {value.job.lease_no} of {value.job.holder}"
            return f"<{short(value.id)} ({was}) becomes {value.state}{', removed' if value.is_removal else ''}>"
        case NewJob():
            return f"<job {short(value.id)} {_fields(value, NewJob(id='', task=value.task, payload=value.payload))}>"
        case Firing():
            shots = ", ".join(f"{shot.job.fire_at} {shot.when_busy}" for shot in value.shots)
            return f"<{value.schedule.id} v{value.schedule.version}: shots [{shots}], {len(value.skips)} skips>"
        case Edit():
            kind = "removed" if value.is_removal else f"revoke={value.revoke!r}, {value.after.spec}"
            return f"<{value.id} v{value.expect_version}: {kind}>"
        case Exchange():
            settled = f"settled={_brief(value.settled)}, " if value.settled else ""
            return f"<{value.holder} {settled}want={value.want} of {','.join(value.queues)}>"
        case list() | tuple():
            return f"[{', '.join(_brief(item) for item in value)}]"
        case _:
            return repr(value)


def _fields(value: Struct, plain: Struct) -> str:
    """The fields that do not have their default."""
    fields = msgspec.structs.asdict(value)
    usual = msgspec.structs.asdict(plain)
    chosen = {name: field for name, field in fields.items() if name != "id" and field != usual[name]}
    return " ".join(f"{name}={field!r}" for name, field in chosen.items())


def short(job_id: str) -> str:
    """The end of an id, which is what differs."""
    return f"…{job_id[-4:]}"
