"""Runs `token`: creates, lists and revokes tokens of the HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.columns import Column
from rota.cli.groups import Group
from rota.cli.options import by_option, check_duration, on_a_store, on_a_store_to_be, output_option
from rota.cli.output import Output, say
from rota.cli.words import count, relative
from rota.errors import TokenNotFound
from rota.inspector.facts.token import TokenFacts, new_token_facts, token_facts, token_state
from rota.model.micros import datetime_of, micros_of
from rota.model.token import ROLES
from rota.store.contract import LARGEST_PAGE
from rota.store.shared.paging import walk

if TYPE_CHECKING:
    from datetime import datetime

    from rota.app import App
    from rota.inspector.token_view import TokenView
    from rota.model.token import Role


@click.group("token", cls=Group)
def tokens() -> None:
    """Create, list and revoke API tokens."""


@tokens.command("create")
@click.option("--name", required=True, metavar="NAME", help="Whom the token is for; audit records show it.")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="read",
    metavar="ROLE",
    help="read, operate (changes, too) or admin (tokens, too).  [default: read]",
)
@click.option(
    "--ttl", metavar="DURATION", callback=check_duration, help="How long it is valid, such as 90d.  [default: no limit]"
)
@by_option
@on_a_store_to_be
@output_option
def create_token(app: App, name: str, role: Role, ttl: str | None, by: str, out: Output) -> None:
    """Create a token; its secret is shown only now."""
    made = app.tokens.create(name, role=role, ttl=ttl, by=by)
    out.page(new_token_facts(made, app.open().now()), lambda: [made.secret])
    say(f"this is all that will ever be shown of it: the store keeps its hash alone (id {made.id})")


@tokens.command("list")
@on_a_store
@output_option
def list_tokens(app: App, out: Output) -> None:
    """List all tokens, without their secrets."""
    found = list(walk(app.tokens.list, limit=LARGEST_PAGE))
    now = datetime_of(app.open().now())
    empty = "there are no tokens; `rota token create` makes one"
    out.rows(found, _columns(now), TokenFacts, lambda view: token_facts(view, micros_of(now)), empty=empty)


@tokens.command("revoke")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@by_option
@on_a_store
def revoke_tokens(app: App, ids: tuple[str, ...], by: str) -> None:
    """Revoke tokens; it takes effect at once."""
    for token_id in ids:
        app.tokens.get(token_id)  # all are there, or none is revoked
    gone = [token_id for token_id in ids if app.tokens.revoke(token_id, by=by)]
    if len(gone) < len(ids):
        raise TokenNotFound("somebody else revoked one of them meanwhile")
    say(f"revoked {count(len(gone), 'token')}")


def _columns(now: datetime) -> list[Column[TokenView]]:
    return [
        Column("token", lambda view: view.id),
        Column("name", lambda view: view.problem or view.name, "wrap"),
        Column("role", lambda view: view.role),
        Column("state", lambda view: token_state(view, micros_of(now))),
        Column("expires", lambda view: relative(view.expires_at, now) if view.expires_at else "never"),
        Column("made by", lambda view: view.created_by, dropped=1),
    ]
