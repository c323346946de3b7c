"""Runs `copy`: copies everything from one store to another while the system is live."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from rota.app import App
from rota.cli.copy_progress import progress
from rota.cli.endings import FAILED
from rota.cli.options import check_duration, output_option
from rota.cli.output import say, warn
from rota.cli.words import count, listed, span
from rota.errors import StoreError
from rota.model.alerts.stored_rule import RULE_KIND
from rota.model.micros import span_of
from rota.model.secrets.masking import masked
from rota.model.tenant import KIND as TENANT_KIND
from rota.operations.copy import check, check_there, is_new, move, undo, undo_command
from rota.store.contract import LARGEST_PAGE, Removal
from rota.store.shared.files import check_can_be_made
from rota.store.urls import absolute, store_from_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.cli.output import Output
    from rota.operations.copy import Moved
    from rota.store.contract import Page, Store

NOUNS = {
    "schedules": "schedule",
    "occurrences": "occurrence",
    "jobs": "job",
    "logs": "log line",
    "queues": "queue",
    "locks": "lock",
    "tenants": "tenant",
    "alert_rules": "alert rule",
    "other_entries": "other named record",
    "audit_records": "audit record",
}


class CopyFacts(Struct, kw_only=True):
    """The content of the target after the copy (or a dry run), and how it was copied."""

    source: str
    target: str
    done: bool  # the source is sealed for good, and the target takes work
    jobs: int = 0
    schedules: int = 0
    occurrences: int = 0
    logs: int = 0
    queues: int = 0
    locks: int = 0
    entries: int = 0  # tenants, alert rules, and what else has a name
    tenants: int = 0
    alert_rules: int = 0
    audit_records: int = 0  # of who changed what
    copied: int = 0  # records, by this run; an earlier one that was stopped may have copied others
    given_back: int = 0  # jobs that still ran after the wait: they start again in the target
    still_in_source: list[str] = []  # other namespaces of the source, which this copy did not touch
    seconds: float = 0.0
    target_url: str = ""  # with *** for each secret
    ends_transactions: bool = False  # jobs can be enqueued in a caller's transaction in the source, not in the target
    removal: Removal | None = None  # how to remove the namespace from the source; None: it could not be read

    @property
    def other_entries(self) -> int:
        return max(0, self.entries - self.tenants - self.alert_rules)


@click.command(
    epilog="The source accepts no more work from the moment this starts. If it is stopped, it continues when it is "
    "started again with the same words."
)
@click.option("--from", "source_url", metavar="URL", required=True, help="The store to copy.")
@click.option("--to", "target_url", metavar="URL", help="The store to copy to; it must be empty.")
@click.option(
    "--wait",
    default="60s",
    callback=check_duration,
    metavar="DURATION",
    help="How long running jobs may take to end; the rest starts again in the target.  [default: 60s]",
)
@click.option(
    "--namespace", metavar="NAME", help="The namespace to copy; one at a time.  [default: as in rota.yaml, else rota]"
)
@click.option("--to-namespace", "into", metavar="NAME", help="Its name in the target.  [default: the same]")
@click.option("--undo", "is_undo", is_flag=True, help="Open the source again, if its copy has not ended.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
def copy(
    source_url: str,
    target_url: str | None,
    wait: str,
    namespace: str | None,
    into: str | None,
    out: Output,
    *,
    is_undo: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Copy everything of a namespace to another store. It asks first; in a script or a pipe it needs --yes."""
    named = namespace or App().settings.namespace
    if is_undo:
        if target_url is not None or into is not None or dry_run:
            raise click.UsageError("--undo takes --from alone: it opens that store again")
        _undo(_store(source_url, named))
        return
    if target_url is None:
        raise click.UsageError("say where to copy: --to URL")
    source, target = _store(source_url, named), _store(target_url, into or named)
    if dry_run:
        _plan(source, target, out)
    else:
        facts = _move(source, target, span_of(wait), is_sure=yes, source_url=source_url)
        facts.target_url = masked(absolute(target_url, Path.cwd()))
        with suppress(StoreError):  # the copy is done, whether the source can still be read or not
            facts.still_in_source = _left_in(source_url, named)
            facts.removal = _store(source_url, named).removal()
        out.page(facts, lambda: _lines(facts, into or named))


def _undo(source: Store) -> None:
    with _opened(_existing(source)):
        seal = undo(source)
    say(
        f"{source.describe()} takes work again; what was copied to {seal.target} stays there, sealed: "
        "empty that store before you copy to it again"
    )


def _plan(source: Store, target: Store, out: Output) -> None:
    """What would be moved; neither store is changed, nor made."""
    with _opened(_existing(source)):
        if is_new(target):
            _check_new(source, target)
        elif not target.pending_migrations():
            with _opened(target):
                check(source, target)
        facts = _facts(source, target, _counted(source))
    out.page(facts, lambda: _plan_lines(facts))


def _plan_lines(facts: CopyFacts) -> Iterator[str]:
    yield f"would move {_sentence(facts)} from {facts.source} to {facts.target}; nothing was done"
    if facts.ends_transactions:
        yield _about_transactions(facts.target)


def _about_transactions(target: str) -> str:
    return (
        f"{target} has no transactions that your code could share: each call with tx= fails there. Find these calls, "
        "and enqueue after your commit instead"
    )


def _ends_transactions(source: Store, target: Store) -> bool:
    return source.features.enqueues_in_transactions and not target.features.enqueues_in_transactions


def _move(source: Store, target: Store, wait: int, *, is_sure: bool, source_url: str) -> CopyFacts:
    began = time.monotonic()
    _existing(source)
    if not is_sure:
        _check_somebody_is_there(source, target)  # before either is opened: that may make or migrate it
    with ExitStack() as opened:
        opened.enter_context(_opened(source))
        if makes_target := is_new(target):
            _check_new(source, target)  # a copy that is refused makes no target
        else:
            opened.enter_context(_opened(target))
            check(source, target)
        if _ends_transactions(source, target):
            warn(_about_transactions(target.describe()))
        if not is_sure:
            _ask(source, target)
        if makes_target:
            opened.enter_context(_opened(target))
        with progress() as on_step, _explain_how_to_continue(source, source_url):
            moved = move(source, target, wait=wait, on_step=on_step)
        records = {**moved.records, **_named(target)}
        return _facts(source, target, records, moved, time.monotonic() - began)


def _check_new(source: Store, target: Store) -> None:
    """Check everything that can be checked before the target is created."""
    check(source, target, is_new=True)
    if target.path is not None:
        check_can_be_made(target.path)


def _left_in(url: str, copied: str) -> list[str]:
    """The other namespaces of the source, without those that were copied before."""
    others = [_store(url, name) for name in _store(url, copied).namespaces() if name != copied]
    return [store.namespace for store in others if not _is_gone(store)]


def _is_gone(store: Store) -> bool:
    if store.pending_migrations():
        return False  # of another version of Rota: to open it would change it
    with _opened(store):
        seal = store.sealed()
    return seal is not None and seal.is_done


def _facts(
    source: Store, target: Store, records: dict[str, Any], moved: Moved | None = None, seconds: float = 0.0
) -> CopyFacts:
    return CopyFacts(
        source=source.describe(),
        target=target.describe(),
        done=moved is not None,
        copied=moved.copied if moved else 0,
        given_back=moved.given_back if moved else 0,
        seconds=round(seconds, 3),
        ends_transactions=_ends_transactions(source, target),
        **records,
    )


def _lines(facts: CopyFacts, namespace: str) -> Iterator[str]:
    yield f"moved {_sentence(facts)} from {facts.source} to {facts.target} in {span(facts.seconds)}"
    if facts.given_back:
        yield f"{count(facts.given_back, 'job')} still ran after the wait and will start again there"
    yield f"restart everything with the URL {facts.target_url}, and namespace {namespace}"
    if facts.still_in_source:
        others = listed([f"namespace {name}" for name in facts.still_in_source])
        yield f"{facts.source} is sealed. The store still holds {others}: keep it until you have copied them, too"
    else:
        yield f"{facts.source} is sealed. {_about_removal(facts.removal)}"


def _about_removal(removal: Removal | None) -> str:
    if removal is None:
        return "It could not be read again, so look what else it holds before you delete anything"
    if removal.whole:
        return f"It holds nothing but what Rota made. Once everything uses the new store, you may {removal.whole}"
    return f"To remove what Rota made there, and nothing else, once everything uses the new store: {removal.words}"


def _sentence(facts: CopyFacts) -> str:
    numbers = [(getattr(facts, part), noun) for part, noun in NOUNS.items()]
    return listed([count(number, noun) for number, noun in numbers if number]) or "nothing"


def _check_somebody_is_there(source: Store, target: Store) -> None:
    """A script must confirm with --yes, because a finished copy cannot be undone."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            f"{source.describe()} takes no more work once it is moved to {target.describe()}, and nobody can be asked "
            "here whether to move it; add --yes, or look first with --dry-run"
        )


def _ask(source: Store, target: Store) -> None:
    question = f"move everything from {source.describe()} to {target.describe()}? The first takes no more work then"
    if not click.confirm(question, err=True):
        say("nothing was done")
        click.get_current_context().exit(FAILED)


def _counted(source: Store) -> dict[str, int]:
    """How many of the records that a person knows there are; the others are counted as they are copied."""
    queues = source.list_queues()
    jobs = sum(sum(queue.counts.values()) for queue in queues)
    schedules = _count_pages(lambda cursor: source.list_schedules(cursor=cursor, limit=200))
    return {"jobs": jobs, "schedules": schedules, "queues": len(queues), **_named(source)}


def _named(store: Store) -> dict[str, int]:
    """How many tenants and alert rules there are."""
    kinds = {"tenants": TENANT_KIND, "alert_rules": RULE_KIND}
    return {part: _count_pages(partial(_entries, store, kind)) for part, kind in kinds.items()}


def _entries(store: Store, kind: str, cursor: str | None) -> Page[Any]:
    return store.list_entries(kind, cursor=cursor, limit=LARGEST_PAGE)


def _count_pages(read: Callable[[str | None], Page[Any]]) -> int:
    total, cursor = 0, None
    while True:
        page = read(cursor)
        total, cursor = total + len(page.items), page.cursor
        if cursor is None:
            return total


def _store(url: str, namespace: str) -> Store:
    store = store_from_url(url, namespace=namespace, folder=Path.cwd())
    if not store.features.is_shared:
        raise StoreError(f"a {store.describe()} lives and ends with one process; name a store that processes share")
    return store


def _existing(store: Store) -> Store:
    """Refuse to create an empty store as the source of a copy."""
    if store.is_missing():
        raise StoreError(f"there is no store at {store.path}; check what --from names")
    check_there(store)
    return store


@contextmanager
def _opened(store: Store) -> Iterator[Store]:
    store.open()
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _explain_how_to_continue(source: Store, url: str) -> Iterator[None]:
    """A copy that is stopped leaves two sealed stores; say what that means."""
    try:
        yield
    except (KeyboardInterrupt, StoreError):
        say(
            f"the copy has not ended: both stores stay sealed. Start it again with the same words to continue it; "
            f"{undo_command(source, masked(url))} opens {source.describe()} again instead"
        )
        raise
