"""Runs `import`: brings the schedules of other systems into the store, or into a file."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rota.app import internals
from rota.cli.groups import Group
from rota.cli.import_run import finish, import_options, tasks_of
from rota.cli.options import check_duration
from rota.cli.output import say, warn
from rota.cli.target import import_module, make_importable
from rota.cli.words import listed, printable
from rota.errors import BadTarget, RotaError
from rota.importers.machine_zone import machine_zone
from rota.model.micros import SECOND, datetime_of, span_of
from rota.model.secrets.masking import masked
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.app import App
    from rota.cli.import_run import Choices
    from rota.importers.found import Item

LARGEST_CRONTAB = 1_000_000  # bytes


@click.group("import", cls=Group)
def imports() -> None:
    """Import schedules from cron, Celery, APScheduler or RQ."""


@imports.command(
    "crontab", epilog="FILE may be -, as in `crontab -l | rota import crontab - --write-code commands.py`."
)
@click.argument("source", metavar="FILE")
@click.option("--system", "is_system", is_flag=True, help="The file has a user column, as /etc/crontab does.")
@click.option("--task", metavar="NAME", help="The task that gets each command as its argument.")
@click.option("--write-code", "code_file", metavar="FILE", help="Write a new Python file with one task for each line.")
@click.option("--overwrite", "overwrites", is_flag=True, help="Replace that file, if an import has written it.")
@click.option("--tz", metavar="ZONE", help="The zone of the times.  [default: that of this machine]")
@import_options
def import_crontab(
    app: App,
    choices: Choices,
    source: str,
    task: str | None,
    code_file: str | None,
    tz: str | None,
    *,
    is_system: bool,
    overwrites: bool,
) -> None:
    """Import the lines of a crontab."""
    from rota.importers.crontab import code_of, crontab_items, read_crontab  # noqa: PLC0415 - of this command alone

    if (task is None) == (code_file is None):
        raise click.UsageError(
            "a crontab line is a command, and Rota runs tasks: --write-code FILE makes a task of each line, and "
            "--task NAME gives the command to a task that you have"
        )
    lines = read_crontab(_text_of(source), is_system=is_system)
    zone, module = find_zone(tz or machine_zone()).name, Path(code_file or "").stem
    items = _items(app, choices, crontab_items, lines, tz=zone, task=task, module=module)
    named = "stdin" if source == "-" else str(Path(source).absolute())

    def write_code() -> None:
        if code_file is not None and any(item.spec for item in items):
            _write_code(Path(code_file), code_of(items, lines, named), overwrites=overwrites)

    finish(app, choices, "crontab", named, items, write_code=write_code)


@imports.command("celery-beat")
@click.argument("source", metavar="MODULE:APP")
@import_options
def import_celery_beat(app: App, choices: Choices, source: str) -> None:
    """Import the beat_schedule of a Celery app. Celery must be installed here."""
    from rota.importers.celery_beat import beat_items, read_beat  # noqa: PLC0415 - of this command alone

    entries = read_beat(_object(source, ("conf", "finalize"), "a Celery app"))
    finish(app, choices, "celery-beat", source, _items(app, choices, beat_items, entries))


@imports.command(
    "django-celery-beat",
    epilog="`--take-over` and `--give-back` move one item at a time, while beat and Rota run. If such a command is "
    "killed, run it again.",
)
@click.argument("source", metavar="DATABASE_URL")
@click.option("--take-over", "takes", is_flag=True, help="Turn items off in beat and on in Rota, one at a time.")
@click.option("--give-back", "gives", is_flag=True, help="Turn taken items off in Rota and on in beat.")
@click.option("--only", multiple=True, metavar="NAME", help="Only the item of this name or id; repeatable.")
@click.option(
    "--wait-for-beat",
    "patience",
    default="60s",
    show_default=True,
    callback=check_duration,
    metavar="DURATION",
    help="How long beat has to answer.",
)
@click.option("--beat-stopped", "is_beat_stopped", is_flag=True, help="Beat does not run: do not wait for its answer.")
@import_options
def import_django_celery_beat(
    app: App,
    choices: Choices,
    source: str,
    only: tuple[str, ...],
    patience: str,
    *,
    takes: bool,
    gives: bool,
    is_beat_stopped: bool,
) -> None:
    """Import the tables of django-celery-beat: sqlite:///path or postgresql://…"""
    from rota.cli import take_over  # noqa: PLC0415 - of this command alone
    from rota.importers.beat_source import SYSTEM, Source  # noqa: PLC0415 - likewise
    from rota.importers.django_celery_beat import read_tables, table_items  # noqa: PLC0415 - likewise

    options = take_over.MoveOptions(
        takes=takes, gives=gives, only=only, patience=span_of(patience) / SECOND, is_beat_stopped=is_beat_stopped
    )
    take_over.check_options(choices, options)
    read = read_tables(source)
    known = Source(app.open(), source)
    rows = take_over.restored(read, known.records)
    items = _items(app, choices, table_items, rows)
    chosen = take_over.choose(take_over.paired(items, rows, known.records), only)
    if options.moves:
        take_over.move(app, choices, source, known, chosen, options)
        return
    left = take_over.reasons(known.records)
    found = finish(app, choices, SYSTEM, known.name, [pair.item for pair in chosen], left=left, is_whole=not only)
    if choices.file is None:
        take_over.warn_of_both(found, chosen)


@imports.command("apscheduler")
@click.argument("source", metavar="MODULE:SCHEDULER")
@import_options
def import_apscheduler(app: App, choices: Choices, source: str) -> None:
    """Import the jobs of an APScheduler 3 scheduler, which is not started by this."""
    from rota.importers.apscheduler import read_scheduler, scheduler_items  # noqa: PLC0415 - of this command alone

    jobs = read_scheduler(_object(source, ("get_jobs", "state"), "a scheduler of APScheduler 3"))
    finish(app, choices, "apscheduler", source, _items(app, choices, scheduler_items, jobs))


@imports.command("rq-scheduler")
@click.argument("source", metavar="REDIS_URL")
@click.option("--tz", metavar="ZONE", help="The zone of jobs with use_local_timezone.  [default: that of this machine]")
@import_options
def import_rq_scheduler(app: App, choices: Choices, source: str, tz: str | None) -> None:
    """Import the jobs of rq-scheduler from Redis."""
    from rota.importers.rq_scheduler import read_redis, rq_items  # noqa: PLC0415 - of this command alone

    jobs, zone = read_redis(source), find_zone(tz or machine_zone()).name
    finish(app, choices, "rq-scheduler", masked(source), _items(app, choices, rq_items, jobs, tz=zone))


@imports.command("rota")
@click.argument("source", metavar="FILE")
@import_options
def import_rota(app: App, choices: Choices, source: str) -> None:
    """Import what `rota export` wrote."""
    from rota.importers.rota_file import (  # noqa: PLC0415 - of this command alone
        Unreadable,
        export_items,
        read_alert_rules,
        read_export,
    )

    path = Path(source)
    try:
        found, rules = read_export(path), read_alert_rules(path)
    except Unreadable as err:
        raise click.UsageError(str(err)) from err
    known = {one.id: one.created_at for one in app.open().get_schedules([one.name for one in found])}
    finish(app, choices, "rota", str(path.absolute()), export_items(found, known, internals(app).registry))
    if choices.file is None:
        _import_rules(app, choices, rules)


def _items(app: App, choices: Choices, translate: Callable[..., list[Item]], found: object, **more: Any) -> list[Item]:
    """What a reader found, translated for the tasks of this app."""
    now = datetime_of(app.open().now())
    return translate(found, tasks_of(app, choices), prefix=choices.prefix, now=now, **more)


def _import_rules(app: App, choices: Choices, rules: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Store the alert rules of an export. One that cannot be stored is reported, and the others are stored."""
    from rota.importers.rota_file import ExportedRule  # noqa: PLC0415 - of this command alone
    from rota.model.alerts.rule import make_rule  # noqa: PLC0415 - likewise

    names: list[str] = []
    for name, said in rules:
        try:
            options = msgspec.structs.asdict(msgspec.convert(said, ExportedRule))
            make_rule(name, **options)
            if not choices.is_dry:
                app.alerts.put(name, by=choices.by, **options)
        except (RotaError, msgspec.ValidationError) as err:
            warn(f"alert rule {printable(name)} is not imported: {printable(str(err))}")
            continue
        names.append(name)
    if names:
        say(f"alert rules{' to import' if choices.is_dry else ' imported'}: {printable(listed(names))}")


def _object(source: str, needed: tuple[str, ...], what: str) -> Any:
    """What `module:name` names. The current folder is importable."""
    place, _, name = source.partition(":")
    make_importable(Path.cwd())
    if not name or not all(part.isidentifier() for part in place.split(".")):
        raise BadTarget(f"{source!r} names no object; write {what} as module:name")
    found = getattr(import_module(place), name, None)
    if not all(hasattr(found, attribute) for attribute in needed):
        raise BadTarget(f"{source} is not {what}")
    return found


def _text_of(source: str) -> str:
    try:
        with nullcontext(sys.stdin.buffer) if source == "-" else Path(source).open("rb") as file:
            data = file.read(LARGEST_CRONTAB + 1)
        text = data.decode()  # line breaks as they are: \r may stand in a command
    except (OSError, UnicodeDecodeError) as err:
        raise click.UsageError(f"{source} cannot be read: {err}") from err
    if len(data) > LARGEST_CRONTAB:
        raise click.UsageError(f"{source} is larger than 1 MB; split it into several files")
    return text


def _write_code(path: Path, text: str, *, overwrites: bool) -> None:
    """Write a file that only its owner may read: the settings of a crontab may be secrets."""
    from rota.importers.crontab import FIRST_LINE  # noqa: PLC0415 - of one command alone

    try:
        before = path.read_text(encoding="utf-8") if path.exists() else None
        if before == text:
            return  # a repeated import
        if before is not None:
            _check_replaceable(path, overwrites=overwrites, is_ours=before.startswith(FIRST_LINE))
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        draft.replace(path)
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "it has no text"
        raise click.UsageError(f"{path} cannot be made ({reason}); name another file") from err
    say(f"wrote {path}, which only you can read; start its tasks with `rota run {path}`")


def _check_replaceable(path: Path, *, overwrites: bool, is_ours: bool) -> None:
    if not is_ours:
        raise click.UsageError(f"{path} exists and is not the code of an import; name a new file")
    if not overwrites:
        raise click.UsageError(
            f"{path} exists and has other code; --overwrite replaces it and your changes in it, or name a new file"
        )
