"""Creates, checks and revokes tokens: secrets that let their bearer read, operate or administer over HTTP.

Only their hashes are stored. A secret begins with its token's public id, so that a check takes one read of the store.
"""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.errors import BadOption, TokenNotFound
from rota.inspector.token_view import NewToken, TokenView
from rota.keywords import known_keywords_of_verbs
from rota.model.audit_record import Author, audit_record_of, subject_of
from rota.model.entry import EntryEdit
from rota.model.micros import span_of
from rota.model.names import check_name
from rota.model.option_names import FOR_VERBS
from rota.model.token import ROLES, Role, Token
from rota.operations.audit import whoami
from rota.store.contract import Page, check_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from rota.model.entry import Entry
    from rota.store.contract import Store

KIND = "token"
_SECRET = re.compile(r"rota_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)
_NO_HASH = "0" * 64  # compared if there is no such token, so that both cases take as long


class Identity(Struct, frozen=True):
    """The authenticated caller of a request, and its role."""

    name: str
    role: Role
    token_id: str = ""  # of a stored token; empty for the settings' own token, and for anonymous access

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


_decoder = msgspec.json.Decoder(Token)


@known_keywords_of_verbs("app.tokens", FOR_VERBS)
class Tokens:
    """app.tokens"""

    def __init__(self, store: Callable[[], Store], new_id: Callable[[], str]) -> None:
        self._store = store
        self._new_id = new_id

    def create(self, name: str, *, role: Role = "read", ttl: str | timedelta | None = None, by: str = "") -> NewToken:
        """Create a token. Only the return value has its secret."""
        if role not in ROLES:
            raise BadOption(f"role={role!r} must be one of {', '.join(ROLES)}")
        store, author = self._store(), by or whoami()
        now = store.now()
        token_id = secrets.token_hex(6)
        secret = f"rota_{token_id}_{secrets.token_urlsafe(32)}"
        token = Token(
            name=check_name("token", name),
            role=role,
            hash=hash_of(secret),
            created_at=now,
            created_by=author,
            expires_at=None if ttl is None else now + span_of(ttl),
        )
        edit = EntryEdit(kind=KIND, name=token_id, expect_version=0, data=msgspec.json.encode(token).decode())
        store.edit_entries([self._with_audit_record(edit, None, token, author, now)])
        return NewToken(token_id, token, secret)

    def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[TokenView]:
        """Tokens by id, a page at a time; expired ones stay until they are revoked."""
        page = self._store().list_entries(KIND, cursor=cursor, limit=check_limit(limit))
        return Page([_view(entry) for entry in page.items], page.cursor)

    def get(self, token_id: str) -> TokenView:
        """The token of that id; TokenNotFound if there is none."""
        found = self._store().get_entries(KIND, [token_id])
        if not found:
            raise TokenNotFound(f"no token has the id {token_id!r}; `rota token list` shows them")
        return _view(found[0])

    def revoke(self, token_id: str, *, by: str = "") -> bool:
        """Revoke a token, with immediate effect; no error if there is none."""
        store = self._store()
        for entry in store.get_entries(KIND, [token_id]):
            edit = EntryEdit(kind=KIND, name=token_id, expect_version=entry.version, data=None)
            token, _ = _read(entry)
            return not store.edit_entries([self._with_audit_record(edit, token, None, by or whoami(), store.now())])
        return False

    def check(self, secret: str) -> Identity | None:
        """The identity of a secret; None if it is unknown, revoked or expired."""
        found = _SECRET.fullmatch(secret)
        if found is None:
            return None
        entries = self._store().get_entries(KIND, [found[1]])
        token = _read(entries[0])[0] if entries else None
        is_right = hmac.compare_digest(token.hash if token else _NO_HASH, hash_of(secret))
        if token is None or not is_right or token.has_expired(self._store().now()):
            return None
        return Identity(token.name, token.role, found[1])

    def bearer(self, token_id: str) -> Identity | None:
        """The identity of a token, by its id alone, for a session that it began. None if it is no longer valid."""
        entries = self._store().get_entries(KIND, [token_id])
        token = _read(entries[0])[0] if entries else None
        if token is None or not token.hash or token.has_expired(self._store().now()):
            return None
        return Identity(token.name, token.role, token_id)

    def good_ids(self, token_ids: Iterable[str]) -> set[str]:
        """The valid ones of these tokens: neither revoked nor expired."""
        store = self._store()
        entries, now = store.get_entries(KIND, sorted(set(token_ids))), store.now()
        return {entry.name for entry in entries if (token := _read(entry)[0]).hash and not token.has_expired(now)}

    def _with_audit_record(
        self, edit: EntryEdit, before: Token | None, after: Token | None, by: str, at: int
    ) -> EntryEdit:
        author = Author(record_id=self._new_id(), by=by, verb="created" if after else "revoked")
        audit = audit_record_of(author, subject_of(KIND, edit.name), _facts(before), _facts(after), at)
        return msgspec.structs.replace(edit, audit=audit)


def id_in(secret: str) -> str:
    """The public id that a secret begins with; empty if the secret has another form. The id may be logged."""
    found = _SECRET.fullmatch(secret)
    return found[1] if found else ""


def hash_of(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _view(entry: Entry) -> TokenView:
    return TokenView(entry.name, *_read(entry))


def _read(entry: Entry) -> tuple[Token, str]:
    """The token. One that cannot be read gives no access, and can still be listed and revoked."""
    try:
        return _decoder.decode(entry.data), ""
    except msgspec.MsgspecError as err:
        return Token(name="", role="read", hash="", created_at=0), f"cannot be read: {err}"


def _facts(token: Token | None) -> dict[str, object]:
    """The facts of a token that an audit record shows: not its hash."""
    return {"name": token.name, "role": token.role, "expires_at": token.expires_at} if token else {}
