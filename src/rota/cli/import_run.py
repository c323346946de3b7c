"""Shows the items that a `rota import` has read, and writes them to the store or to a file."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from rota.app import App, internals
from rota.cli.options import app_option, by_option, check_shared, find_store, store_option
from rota.cli.output import FORMS, Output, heading, say, warn, write
from rota.cli.target import load_target
from rota.cli.words import count, listed, local, printable
from rota.importers.found import SHOWN_RUNS, Tasks
from rota.importers.import_plan import Import, apply_import, check_strict, coming, origin_of, plan_import
from rota.importers.yaml_fragment import entry_of, fragment_of, unsaid_in_yaml
from rota.model.jobs.payload import unpack_call
from rota.model.micros import SECOND
from rota.store.shared.liveness import live_nodes
from rota.store.urls import store_from_url
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rota.importers.found import Item
    from rota.importers.import_plan import PlannedItem
    from rota.model.schedules.schedule import ScheduleSpec

MARKS = {
    "add": ("+", "green"),
    "restore": ("+", "green"),
    "re-time": ("~", "yellow"),
    "change": ("~", "yellow"),
    "unchanged": ("=", None),
    "left": ("!", "yellow"),
    "unsupported": ("!", "red"),
}
DONE = {"add": "added", "restore": "restored", "re-time": "re-timed", "change": "changed", "left": "left alone"}


class ImportFacts(Struct, kw_only=True):
    """The fields of an item in JSON, YAML and CSV; times are UTC."""

    id: str
    name: str  # what the old system calls it
    state: str  # add, restore, change, re-time, unchanged, left or unsupported
    old: str
    new: dict[str, Any] | None  # by the keys of rota.yaml
    old_runs: list[datetime] | None  # by the old system's rules, if they are known
    new_runs: list[datetime]
    warnings: list[str]
    says: list[str]  # what differs from the store, or why it is not imported


class Choices(Struct, frozen=True, kw_only=True):
    """The options that every import has."""

    by: str
    form: str
    file: str | None
    map_file: str | None
    prefix: str
    is_dry: bool
    is_strict: bool
    retires: bool
    is_off: bool


def import_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that every import has; the command gets them as one value."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.option("--dry-run", "is_dry", is_flag=True, help="Show old and new with their next runs; write nothing."),
        click.option("--to", "file", metavar="FILE", help="Write a part of rota.yaml to a new file, not to the store."),
        click.option("--map", "map_file", metavar="FILE", help="YAML that says `old task name: new task name`."),
        click.option("--prefix", default="", metavar="TEXT", help="Put this before each id."),
        click.option(
            "--disabled", "is_off", is_flag=True, help="Import the schedules disabled, while the old system runs."
        ),
        click.option("--strict", "is_strict", is_flag=True, help="Write nothing if an item cannot be imported."),
        click.option("--retire", "retires", is_flag=True, help="Retire what the source no longer has."),
        click.option(
            "-o",
            "--output",
            "form",
            type=click.Choice([*FORMS, "yaml"]),
            metavar="FORM",
            default="table",
            help="Write data as table, json, jsonl, csv or yaml.  [default: table]",
        ),
        by_option,
        app_option,
        store_option,
    ]

    @wraps(function)
    def command(**given: Any) -> None:
        names = Choices.__struct_fields__
        choices = Choices(**{name: given.pop(name) for name in names})
        with _app(given.pop("target"), given.pop("store_url"), is_dry=choices.is_dry or bool(choices.file)) as app:
            function(app, choices, **given)

    found: Callable[..., None] = command
    for option in reversed(options):
        found = option(found)
    return found


@contextmanager
def _app(target: str | None, store_url: str | None, *, is_dry: bool) -> Iterator[App]:
    """The app on its store, which the command opens once it has read the source: a source that cannot be read makes no
    store. If nothing is written, a store that does not exist is an empty one."""
    app = load_target(target).app if target else App()
    if store_url or not target:
        internals(app).store.use(find_store(store_url, app.settings.namespace))
    check_shared(app)
    if is_dry and internals(app).store.find().is_missing():
        before = internals(app).store.use(store_from_url("memory://"))
        click.get_current_context().call_on_close(lambda: internals(app).store.use(before))
    try:
        yield app
    finally:
        app.close()


def tasks_of(app: App, choices: Choices) -> Tasks:
    """The tasks of the app, and the names that --map gives."""
    tasks = Tasks(internals(app).registry, _names(choices.map_file))
    click.get_current_context().call_on_close(lambda: _say_unused(tasks, choices))
    return tasks


def _say_unused(tasks: Tasks, choices: Choices) -> None:
    if tasks.unused:
        warn(f"--map {choices.map_file} names {listed(tasks.unused)}, and no item of the source has such a task")


def _names(file: str | None) -> dict[str, str]:
    if file is None:
        return {}
    import yaml  # noqa: PLC0415 - only this needs it

    try:
        read = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        return msgspec.convert({} if read is None else read, dict[str, str])
    except (OSError, yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as err:
        raise click.UsageError(f"--map {file} must be YAML with lines such as `old.task: new.task`: {err}") from err


def finish(
    app: App,
    choices: Choices,
    system: str,
    source: str,
    items: Sequence[Item],
    *,
    left: Mapping[str, str] | None = None,
    is_shown: bool = True,
    is_whole: bool = True,
    write_code: Callable[[], None] | None = None,
) -> Import:
    """Show what an import does, and do it. `left`: the ids that it leaves alone, each with the reason. `is_whole`: the
    source has no other items. `write_code`: what else is written, once nothing speaks against it."""
    if choices.is_off:
        items = [item if item.spec is None else _switched_off(item, item.spec) for item in items]
    found = plan_import(app, origin_of(system, source), items, retires=choices.retires, left=left or {})
    if is_shown:
        _write(app, found, choices)
    if choices.is_strict:
        check_strict(found)
    if choices.is_dry:
        if is_shown:
            say(f"nothing was written: {_summary(found)}")
        return found
    if choices.file is not None and Path(choices.file).exists():
        raise click.UsageError(f"{choices.file} exists; name a new file")
    if write_code is not None:
        write_code()
    if choices.file is not None:
        _write_fragment(Path(choices.file), items, source)
    else:
        apply_import(app, found, by=choices.by)
        say(_summary(found))
        if is_whole:
            _say_gone(found, retires=choices.retires)
        _say_unserved(app, found)
    return found


def _say_unserved(app: App, found: Import) -> None:
    """Name queues that no live worker takes, if any worker lives: before the first one starts, none is."""
    workers = [node for node in live_nodes(app.open().list_nodes(), app.open().now()) if node.queues]
    served = {queue for node in workers for queue in node.queues}
    wanted = {one.item.spec.queue for one in found.items if one.item.spec is not None and one.after is not None}
    if workers and wanted - served:
        warn(f"no live worker takes queue {listed(sorted(wanted - served))}; name it with `rota run --queues`")


def _switched_off(item: Item, spec: ScheduleSpec) -> Item:
    return msgspec.structs.replace(item, spec=msgspec.structs.replace(spec, enabled=False))


def _say_gone(found: Import, *, retires: bool) -> None:
    if found.gone and retires:
        say(f"retired, because the source no longer has them: {listed(found.gone)}")
    elif found.gone:
        warn(f"the source no longer has {listed(found.gone)}, and they go on; --retire stops them")


def _write_fragment(path: Path, items: Sequence[Item], source: str) -> None:
    for item in items:
        if item.spec is not None and (unsaid := unsaid_in_yaml(item.spec)):
            warn(f"{item.id}: rota.yaml has no key for {listed(unsaid)}; the task itself must say it")
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(fragment_of(items, source))
    except FileExistsError as err:
        raise click.UsageError(f"{path} exists; name a new file") from err
    except OSError as err:
        raise click.UsageError(f"{path} cannot be made ({err.strerror}); name another file") from err
    say(f"wrote {path}; put its schedules into rota.yaml")


def _summary(found: Import) -> str:
    kinds = Counter(one.state for one in found.items)
    words = [f"{number:,} {DONE.get(kind, kind)}" for kind, number in kinds.items()]
    return f"{count(len(found.items), 'item')}: {listed(words)}" if words else "the source has no schedules"


def _write(app: App, found: Import, choices: Choices) -> None:
    now = app.open().now()
    if choices.form == "table":
        for one in found.items:
            for line in _lines(app, one, now):
                write(line)
        return
    facts = [_facts(one, now) for one in found.items]
    if choices.form == "yaml":
        import yaml  # noqa: PLC0415 - only this needs it

        write(yaml.safe_dump(msgspec.to_builtins(facts), sort_keys=False, allow_unicode=True), nl=False)
        return
    Output(choices.form).rows(facts, [], ImportFacts, lambda fact: fact, empty="")


def _lines(app: App, one: PlannedItem, now: int) -> Iterator[str]:
    mark, colour = MARKS[one.state]
    yield f"{click.style(mark, fg=colour)} {heading(one.item.id)}  {one.state}"
    yield f"    old:       {printable(one.item.old_text)}"
    if one.item.spec is not None:
        yield f"    new:       {printable(_words(app, one.item.spec))}"
        if one.item.old_runs is not None:
            yield f"    old runs:  {_shown(one.item.old_runs)}"
        yield f"    new runs:  {_shown(_runs(one, now))}"
    yield from (f"    {printable(line)}" for line in one.says)
    yield from (f"    {click.style('warning:', fg='yellow')} {printable(line)}" for line in _warnings(one, now))


def _words(app: App, spec: ScheduleSpec) -> str:
    """The new rule and its call."""
    call = internals(app).redaction.shown(unpack_call(spec.payload.encode()))
    said = [*map(repr, call.args), *(f"{name}={value!r}" for name, value in call.kwargs.items())]
    queue = "" if spec.queue == "default" else f" on queue {spec.queue}"
    return f"{spec.trigger} ({spec.tz}) {spec.task}({', '.join(said)}){queue}"


def _runs(one: PlannedItem, now: int) -> list[datetime]:
    if one.after is None or one.item.spec is None:
        return []
    zone = find_zone(one.item.spec.tz)
    return [zone.datetime_of(at // SECOND) for at in coming(one.after, now, SHOWN_RUNS)]


def _shown(runs: Sequence[datetime]) -> str:
    return ", ".join(map(local, runs)) or "none"


def _warnings(one: PlannedItem, now: int) -> list[str]:
    """Warnings about the items, for instance that both systems disagree about the next runs."""
    differ = "the next runs of the two systems differ"
    old = one.item.old_runs
    is_same = old is None or one.state not in {"add", "unchanged"} or list(old) == _runs(one, now)
    return [*one.item.warnings, *([] if is_same else [differ])]


def _facts(one: PlannedItem, now: int) -> ImportFacts:
    return ImportFacts(
        id=one.item.id,
        name=one.item.name,
        state=one.state,
        old=one.item.old_text,
        new=None if one.item.spec is None else entry_of(one.item.spec),
        old_runs=None if one.item.old_runs is None else list(one.item.old_runs),
        new_runs=_runs(one, now),
        warnings=_warnings(one, now),
        says=list(one.says),
    )
