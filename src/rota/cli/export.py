"""export: all schedules, or jobs, as text that people and programs can read. Pages are written as they are read."""

from __future__ import annotations

import os
import textwrap
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from rota.app import internals
from rota.cli.jobs import WHERE_HELP
from rota.cli.options import on_a_store
from rota.cli.output import say, write
from rota.cli.where import filter_from, matching_jobs
from rota.cli.words import instant
from rota.errors import BadPayload
from rota.inspector.facts.job import job_page_facts
from rota.inspector.reading import all_schedules
from rota.model.micros import datetime_of, optional_datetime, span_text
from rota.model.payload import REDACTED, Call, unpack_call
from rota.model.redaction import NOTHING_HIDDEN
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.app import App
    from rota.model.redaction import Redaction
    from rota.model.schedule import Origin, Schedule
    from rota.store.contract import Store

FORMAT = 1  # of the file; rises when a reader of older ones would misunderstand it


class ExportedSchedule(Struct, kw_only=True, omit_defaults=True):
    """A schedule as its author and its operators defined it; what was not said is left out."""

    trigger: str  # its compact text form, which the next Rota reads back
    tz: str
    task: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    retries: int | None = None
    timeout: str | None = None
    queue: str
    priority: int
    key: str | None = None  # the unique key of its jobs
    key_for: str | None = None
    overlap: str
    catchup: str
    catchup_limit: int
    grace: str
    jitter: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    day_bounds: list[str] = []  # which of start and end were said as local days
    max_runs: int | None = None
    run_on_start: bool = False
    lookahead: str | None = None
    tenant: str | None = None
    follows: dict[str, str | int] = {}  # what above is its tenant's word, each with what holds where that says nothing
    sync: dict[str, Any] | None = None  # the collection that its jobs keep in sync
    enabled: bool
    paused: dict[str, Any] | None = None
    description: str = ""
    origin: dict[str, str]
    retired: bool = False
    created_at: datetime
    run_count: int
    problem: str | None = None  # why it cannot be evaluated, where it cannot


@click.command(
    epilog="Everything goes to stdout: `rota export > schedules.yaml`. Secret arguments and results are written as "
    f"{REDACTED}; `rota export --with-secrets --to FILE` writes their values."
)
@click.option("--jobs", "is_jobs", is_flag=True, help="Export jobs with their histories, newest first.")
@click.option("--where", metavar="FILTER", help=f"With --jobs. {WHERE_HELP}")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json", "jsonl"]),
    metavar="FORM",
    help="Write yaml, json or jsonl.  [default: yaml; with --jobs: jsonl]",
)
@click.option("--to", "file", metavar="FILE", help="Write a new file that its owner alone can read, not to stdout.")
@click.option("--with-secrets", is_flag=True, help="Write secret values too; needs --to.")
@on_a_store
def export(
    app: App, where: str | None, form: str | None, file: str | None, *, is_jobs: bool, with_secrets: bool
) -> None:
    """Write all schedules, or jobs, to stdout or a file."""
    store, hidden = app.open(), NOTHING_HIDDEN if with_secrets else internals(app).redaction
    if with_secrets and file is None:
        raise click.UsageError("--with-secrets writes secret values, so they need a file: add --to FILE")
    if where is not None and not is_jobs:
        raise click.UsageError("--where chooses jobs; add --jobs")
    if is_jobs and form == "yaml":
        raise click.UsageError("jobs are written as jsonl or json, not as yaml: there may be millions")
    found = _jobs(store, where or "", form or "jsonl", hidden) if is_jobs else _schedules(store, form or "yaml", hidden)
    if file is None:
        for text in found:
            write(text, nl=False)
    else:
        _write_file(Path(file), found)


def _write_file(path: Path, found: Iterator[bytes]) -> None:
    """A new file with mode 0600: one that exists may be open to others already."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as err:
        raise click.UsageError(f"{path} exists; name a new file") from err
    except OSError as err:
        raise click.UsageError(f"{path} cannot be made ({err.strerror}); name another file") from err
    with os.fdopen(descriptor, "wb") as out:
        out.writelines(found)
    say(f"wrote {path}; its owner alone can read it")


def _jobs(store: Store, where: str, form: str, hidden: Redaction) -> Iterator[bytes]:
    jobs = matching_jobs(store, filter_from(where, store.now()))
    lines = (msgspec.json.encode(job_page_facts(job, hidden)) for job in jobs)
    return _joined(lines, b"\n", b"", b"\n") if form == "jsonl" else _joined(lines, b",\n", b"[\n", b"\n]\n")


def _schedules(store: Store, form: str, hidden: Redaction) -> Iterator[bytes]:
    found = ((schedule.id, exported(schedule, hidden)) for schedule in all_schedules(store))
    if form == "jsonl":
        return _joined((_line(name, facts) for name, facts in found), b"\n", b"", b"\n")
    if form == "json":
        entries = (msgspec.json.encode(name) + b": " + msgspec.json.encode(facts) for name, facts in found)
        return _joined(entries, b",\n", f'{{"format": {FORMAT}, "schedules": {{\n'.encode(), b"\n}}\n")
    head = f"# The schedules of {store.describe()}, {instant(datetime_of(store.now()))}\nformat: {FORMAT}\nschedules:"
    return _joined(
        (_yaml(name, facts) for name, facts in found), b"", f"{head}\n".encode(), b"", f"{head} {{}}\n".encode()
    )


def _joined(
    parts: Iterable[bytes], between: bytes, first: bytes, last: bytes, empty: bytes | None = None
) -> Iterator[bytes]:
    """The parts a page at a time: few writes, and never all of it in memory."""
    parts = iter(parts)
    page = list(islice(parts, LARGEST_PAGE))
    if not page:
        yield (first.rstrip(b"\n") + last.lstrip(b"\n") if first else b"") if empty is None else empty
        return
    yield first
    while page:
        following = list(islice(parts, LARGEST_PAGE))
        yield between.join(page) + (between if following else b"")
        page = following
    yield last


def _line(name: str, facts: ExportedSchedule) -> bytes:
    return msgspec.json.encode({"id": name, **msgspec.to_builtins(facts)})


def _yaml(name: str, facts: ExportedSchedule) -> bytes:
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415 - only this needs it

    body = {name: msgspec.to_builtins(facts)}
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast, where PyYAML was built with libyaml
    text: str = yaml.dump(body, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    return textwrap.indent(text, "  ").encode()


def exported(schedule: Schedule, hidden: Redaction) -> ExportedSchedule:
    spec, pause = schedule.spec, schedule.pause
    call, problem = _call_of(schedule, hidden)
    return ExportedSchedule(
        trigger=spec.trigger,
        tz=spec.tz,
        task=spec.task,
        args=call.args,
        kwargs=call.kwargs,
        meta=call.meta,
        retries=call.retries,
        timeout=span_text(call.timeout) if call.timeout else None,
        queue=spec.queue,
        priority=spec.priority,
        key=spec.key or None,
        key_for=span_text(spec.key_for) if spec.key_for else None,
        overlap=spec.overlap,
        catchup=spec.catchup,
        catchup_limit=spec.catchup_limit,
        grace=span_text(spec.grace),
        jitter=span_text(spec.jitter) if spec.jitter else None,
        start=optional_datetime(spec.start),
        end=optional_datetime(spec.end),
        day_bounds=list(spec.day_bounds),
        max_runs=spec.max_runs,
        run_on_start=spec.run_on_start,
        lookahead=span_text(spec.lookahead) if spec.lookahead else None,
        tenant=spec.tenant or None,
        follows=spec.follows,
        sync=None if spec.sync is None else msgspec.structs.asdict(spec.sync),
        enabled=schedule.is_enabled,
        paused=None
        if pause is None
        else {"reason": pause.reason, "by": pause.by, "until": optional_datetime(pause.until)},
        description=spec.description,
        origin=_origin_of(schedule.origin),
        retired=schedule.origin.is_retired,
        created_at=datetime_of(schedule.created_at),
        run_count=schedule.runs,
        problem=schedule.problem or problem,
    )


def _origin_of(origin: Origin) -> dict[str, str]:
    moved = {"zone": origin.zone} if origin.zone else {}
    return {"kind": origin.kind, "app": origin.app, "version": origin.version, **moved}


def _call_of(schedule: Schedule, hidden: Redaction) -> tuple[Call, str | None]:
    """Its call; what cannot be read is told, and the others are exported."""
    try:
        return hidden.shown(unpack_call(schedule.spec.payload.encode())), None
    except BadPayload as err:
        return Call(), str(err)
