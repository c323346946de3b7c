"""Defines tokens for the HTTP API, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.inspector.facts.values import filled
from rota.model.token import Role

if TYPE_CHECKING:
    from rota.inspector.token_view import NewToken, TokenView

TokenState = Literal["valid", "expired", "unreadable"]


class TokenFacts(Struct, kw_only=True):
    """A token, without its secret."""

    id: str
    name: str
    role: Role
    state: TokenState
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    problem: str | None  # why its record cannot be read, if it cannot


class NewTokenFacts(TokenFacts, kw_only=True):
    """A token that was just created. Its secret is shown only once."""

    secret: str


def token_facts(token: TokenView, now: int) -> TokenFacts:
    return filled(TokenFacts, token, state=token_state(token, now))


def new_token_facts(token: NewToken, now: int) -> NewTokenFacts:
    return filled(NewTokenFacts, token, state=token_state(token, now))


def token_state(token: TokenView, now: int) -> TokenState:
    if token.problem:
        return "unreadable"
    return "expired" if token.record.has_expired(now) else "valid"
