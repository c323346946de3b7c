"""Runs `export`: writes all schedules and stored alert rules, or jobs, as text for people and programs.

Pages are written as they are read.
"""

from __future__ import annotations

import os
import textwrap
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rota.alerts.stored_rules import read_stored_rules
from rota.app import internals
from rota.cli.jobs import WHERE_HELP
from rota.cli.options import on_a_store
from rota.cli.output import say, write
from rota.cli.words import instant
from rota.inspector.facts.alert import rule_options
from rota.inspector.facts.exported import FORMAT, ExportedSchedule, exported
from rota.inspector.facts.job import job_page_facts
from rota.inspector.reading import all_schedules
from rota.inspector.search import filter_from, matching_jobs
from rota.model.jobs.payload import REDACTED
from rota.model.micros import datetime_of
from rota.model.secrets.redaction import NOTHING_HIDDEN
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.app import App
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store


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
    """Write schedules and alert rules, or jobs, as YAML or JSON."""
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
    alerts = _alerts(store)
    if form == "json":
        ending = b"\n}" + (b',\n"alerts": ' + msgspec.json.encode(alerts) if alerts else b"") + b"}\n"
        entries = (msgspec.json.encode(name) + b": " + msgspec.json.encode(facts) for name, facts in found)
        return _joined(entries, b",\n", f'{{"format": {FORMAT}, "schedules": {{\n'.encode(), ending)
    head = f"# The schedules of {store.describe()}, {instant(datetime_of(store.now()))}\nformat: {FORMAT}\nschedules:"
    ending = _yaml_text({"alerts": alerts}).encode() if alerts else b""
    return _joined(
        (_yaml(name, facts) for name, facts in found),
        b"",
        f"{head}\n".encode(),
        ending,
        f"{head} {{}}\n".encode() + ending,
    )


def _alerts(store: Store) -> dict[str, dict[str, object]]:
    """The stored alert rules of every app, by the keys of rota.yaml."""
    return {name: rule_options(one.rule) for name, one in read_stored_rules(store).items()}


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
    return textwrap.indent(_yaml_text({name: msgspec.to_builtins(facts)}), "  ").encode()


def _yaml_text(body: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415 - only this needs it

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast, if PyYAML was built with libyaml
    text: str = yaml.dump(body, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text
