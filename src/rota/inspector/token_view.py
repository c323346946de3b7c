"""Shows a token to callers without its secret; only one that was just created has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.micros import datetime_of, optional_datetime, outside_calendar

if TYPE_CHECKING:
    from rota.model.token import Token


class TokenView:
    """A token as callers see it, without its secret."""

    def __init__(self, token_id: str, token: Token, problem: str = "") -> None:
        self.record = token
        self.problem = problem or outside_calendar(created_at=token.created_at, expires_at=token.expires_at) or None
        self.id = token_id
        self.name = token.name
        self.role = token.role
        self.created_at = datetime_of(token.created_at)
        self.created_by = token.created_by
        self.expires_at = optional_datetime(token.expires_at)

    def __repr__(self) -> str:
        return f"<token {self.id}: {self.name}, {self.role}>"


class NewToken(TokenView):
    """A token that was just created, with its secret."""

    def __init__(self, token_id: str, token: Token, secret: str) -> None:
        super().__init__(token_id, token)
        self.secret = secret
