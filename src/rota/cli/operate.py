"""Runs `queues`, `nodes` and `migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.app import internals
from rota.cli.columns import Column
from rota.cli.groups import Group
from rota.cli.options import app_option, by_option, find_store, on_a_store, output_option, store_option
from rota.cli.output import Output, say, warn, write
from rota.cli.store_wait import wait_option, when_reached
from rota.cli.target import load_target
from rota.cli.words import count, relative, span
from rota.config.words import meant
from rota.inspector.facts.node import NodeFacts, node_facts, node_problem
from rota.inspector.facts.queue import QueueFacts, queues_facts
from rota.model.jobs.job import State
from rota.model.micros import datetime_of, micros_of
from rota.model.names import check_name
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from datetime import datetime

    from rota.app import App
    from rota.store.contract import Node, Store


@click.group(cls=Group)
def queues() -> None:
    """List, pause and resume queues."""


@queues.command("list")
@on_a_store
@output_option
def list_queues(app: App, out: Output) -> None:
    """List queues with their numbers of jobs."""
    store = app.open()
    found = store.list_queues()
    now = datetime_of(store.now())
    facts = queues_facts(store, found)
    out.rows(facts, _queue_columns(now), QueueFacts, _same, empty=f"{store.describe()} has no queues yet")


@queues.command("pause")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--reason", default="", help="Why; recorded in the audit record.")
@by_option
@on_a_store
@output_option
def pause_queues(app: App, names: tuple[str, ...], reason: str, by: str, out: Output) -> None:
    """Pause queues: workers claim no jobs from them; running jobs continue."""
    _pause(app, names, by, out, paused=True, reason=reason)


@queues.command("resume")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@by_option
@on_a_store
@output_option
def resume_queues(app: App, names: tuple[str, ...], by: str, out: Output) -> None:
    """Resume queues."""
    _pause(app, names, by, out, paused=False)


@click.group(cls=Group)
def nodes() -> None:
    """List the processes that run jobs and fire schedules."""


@nodes.command("list")
@on_a_store
@output_option
def list_nodes(app: App, out: Output) -> None:
    """List all nodes."""
    store = app.open()
    now = datetime_of(store.now())
    columns, facts = _node_columns(now), lambda node: node_facts(node, micros_of(now))
    out.rows(store.list_nodes(), columns, NodeFacts, facts, empty="no node is running; `rota run TARGET` starts one")


@click.command()
@click.option("--plan", is_flag=True, help="Only print what would be run.")
@app_option
@store_option
@wait_option
def migrate(target: str | None, store_url: str | None, wait_for: str | None, *, plan: bool) -> None:
    """Create or migrate the store's tables."""
    store = store_of(target, store_url)
    scripts = when_reached(store.pending_migrations, wait_for, warn)
    if not scripts:
        say(f"{store.describe()} is up to date; there is nothing to do")
    elif plan:
        for script in scripts:
            write(script.rstrip())
        say(f"{count(len(scripts), 'step')} would bring {store.describe()} up to date; nothing was changed")
    else:
        store.open()
        store.close()
        say(f"{store.describe()} is up to date now: {count(len(scripts), 'step')} done")


def store_of(target: str | None, store_url: str | None) -> Store:
    """The store of --store, of the app, or of this folder, unopened."""
    if not target:
        return find_store(store_url)
    app = load_target(target).app
    if store_url:
        return find_store(store_url, app.settings.namespace)
    return internals(app).store.find()


def _pause(app: App, names: tuple[str, ...], by: str, out: Output, *, paused: bool, reason: str = "") -> None:
    store = app.open()
    checked = [check_name("queue", name) for name in names]
    known = _known_queues(app)
    for name in checked:
        if not paused and name not in known:
            warn(f"no job, worker or task has used a queue {name}, and it is not paused{_meant_queue(name, known)}")
            continue
        if paused:
            app.queues.pause(name, reason=reason, by=by)
        else:
            app.queues.resume(name, by=by)
        done = "paused" if paused else "resumed"
        say(f"{done} queue {name}")
        if name not in known:
            warn(f"no job, worker or task has used a queue {name} yet{_meant_queue(name, known, paused=True)}")
    if out.form != "table":
        changed = [queue for queue in store.list_queues() if queue.name in names]
        out.rows(queues_facts(store, changed), [], QueueFacts, _same, empty="")


def _known_queues(app: App) -> set[str]:
    """The queues that jobs have been in, that workers take jobs from, or that tasks of the app name."""
    store = app.open()
    taken = {queue for node in store.list_nodes() for queue in node.queues}
    named = {task.options.queue for task in internals(app).registry}
    return {queue.name for queue in store.list_queues()} | taken | named


def _meant_queue(name: str, known: set[str], *, paused: bool = False) -> str:
    close = meant(name, sorted(known))
    if close is None:
        return "; it stays paused for the first job" if paused else ""
    back = f" `rota queues resume {name}` takes this back" if paused else ""
    return f"; did you mean {close}?{back}"


def _same(facts: QueueFacts) -> QueueFacts:
    return facts


def _queue_columns(now: datetime) -> list[Column[QueueFacts]]:
    def number(state: State) -> Column[QueueFacts]:
        dropped = {State.CANCELLED: 3, State.HELD: 2, State.SUCCEEDED: 1}.get(state, 0)
        return Column(state.value, lambda queue: f"{number_of(queue, state):,}", is_number=True, dropped=dropped)

    return [
        Column("queue", lambda queue: queue.name),
        Column("state", lambda queue: queue.state),
        *(number(state) for state in (State.QUEUED, State.RUNNING, State.SCHEDULED, State.HELD)),
        Column("oldest", lambda queue: _age(queue, now)),
        *(number(state) for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED)),
    ]


def number_of(queue: QueueFacts, state: State) -> int:
    """The jobs of a queue in a state; of a final state, all that ever ended so."""
    return (queue.totals if state.is_final else queue.counts).get(state.value, 0)


def _age(queue: QueueFacts, now: datetime) -> str:
    return span((now - queue.oldest_at).total_seconds()) if queue.oldest_at is not None else "-"


def _node_columns(now: datetime) -> list[Column[Node]]:
    return [
        Column("node", lambda node: node.id),
        Column("state", lambda node: node_problem(node) or _node_state(node, now), "wrap"),
        Column("roles", lambda node: ", ".join(node.roles), "wrap"),
        Column("queues", lambda node: ", ".join(node.queues) or "-", "wrap"),
        Column("running", lambda node: _running(node, now)),
        Column("app", lambda node: f"{node.app} {node.version}".strip(), dropped=3),
        Column("up", lambda node: span((now - datetime_of(node.started_at)).total_seconds()), dropped=2),
        Column("heard of", lambda node: relative(datetime_of(node.beat_at), now), dropped=1),
    ]


def _running(node: Node, now: datetime) -> str:
    """Nothing for a silent node: what it said last is no longer true."""
    if not node.concurrency or not is_alive(node, micros_of(now)):
        return "-"
    return f"{node.running} of {node.concurrency}"


def _node_state(node: Node, now: datetime) -> str:
    return state_of_node(node_facts(node, micros_of(now)))


def state_of_node(node: NodeFacts) -> str:
    """The state that a list shows: what a silent node said last may no longer be true."""
    return "draining" if node.is_draining and node.state == "alive" else node.state
