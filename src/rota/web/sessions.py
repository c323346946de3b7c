"""Logs a browser in by a cookie once it has shown a token, for as long as the token is valid.

The store keeps a hash of the cookie's secret and which token let the session in. A session ends when it is logged out,
after a week, or at once when its token is revoked, expires, or is no longer the one of the settings.
"""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.client.tokens import Identity, hash_of
from rota.model.entry import EntryEdit
from rota.model.micros import SECOND
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.app import App
    from rota.model.entry import Entry
    from rota.store.contract import Store

KIND, LINK_KIND = "session", "login"
KEPT_FOR = 7 * 24 * 3600 * SECOND
LINK_FOR = 15 * 60 * SECOND  # a login link that nobody used by then is void

_COOKIE = re.compile(r"([0-9a-f]{16})_([A-Za-z0-9_-]{24})", re.ASCII)
_NO_HASH = "0" * 64  # compared if there is no session, so that both cases take equally long


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session, or a link that begins one, as the store keeps it."""

    hash: str
    expires_at: int
    token_id: str = ""  # of a token that the store keeps
    admin: str = ""  # or a fingerprint of the server's own token


_decoder = msgspec.json.Decoder(Session)


class Sessions:
    """The sessions of one server's visitors."""

    def __init__(self, app: App, admin_hash: str | None) -> None:
        self._app = app
        self._admin = fingerprint(admin_hash)

    def begin(self, who: Identity) -> str:
        """A new session's cookie, for somebody whose token was just checked."""
        self._forget_expired()
        return self._make(KIND, KEPT_FOR, who)

    def identify(self, cookie: str) -> Identity | None:
        """Who has this cookie; None if nobody has, or the session is over."""
        store = self._app.open()
        found = self._read(store, KIND, cookie)
        if found is None:
            return None
        session = found[1]
        return self._identity(session) if session.expires_at > store.now() else None

    def end(self, cookie: str) -> None:
        store = self._app.open()
        found = self._read(store, KIND, cookie)
        if found is not None:
            store.edit_entries([_removal(found[0])])

    def make_link(self) -> str:
        """The secret of a link that logs an admin of this server in, once."""
        return self._make(LINK_KIND, LINK_FOR, Identity("admin", "admin"))

    def use_link(self, code: str) -> str | None:
        """A new session's cookie; None if the link was used before, or is too old."""
        store = self._app.open()
        found = self._read(store, LINK_KIND, code)
        if found is None or store.edit_entries([_removal(found[0])]):  # refused: somebody else was first
            return None
        who = self._identity(found[1]) if found[1].expires_at > store.now() else None
        return None if who is None else self.begin(who)

    def _identity(self, session: Session) -> Identity | None:
        if session.token_id:
            return self._app.tokens.bearer(session.token_id)
        is_own = bool(self._admin) and hmac.compare_digest(self._admin, session.admin)
        return Identity("admin", "admin") if is_own else None

    def _make(self, kind: str, kept_for: int, who: Identity) -> str:
        store = self._app.open()
        name, secret = secrets.token_hex(8), secrets.token_urlsafe(18)
        session = Session(
            hash=hash_of(secret),
            expires_at=store.now() + kept_for,
            token_id=who.token_id,
            admin="" if who.token_id else self._admin,
        )
        data = msgspec.json.encode(session).decode()
        store.edit_entries([EntryEdit(kind=kind, name=name, expect_version=0, data=data)])
        return f"{name}_{secret}"

    def _read(self, store: Store, kind: str, cookie: str) -> tuple[Entry, Session] | None:
        found = _COOKIE.fullmatch(cookie)
        if found is None:
            return None
        entries = store.get_entries(kind, [found[1]])
        session = _unpacked(entries[0]) if entries else None
        is_right = hmac.compare_digest(session.hash if session else _NO_HASH, hash_of(found[2]))
        return (entries[0], session) if session is not None and is_right else None

    def _forget_expired(self) -> None:
        """Each login checks up to 200 entries and removes the expired ones, so that their number stays bounded."""
        store = self._app.open()
        now = store.now()
        for kind in (KIND, LINK_KIND):
            entries = _sample(store, kind)
            expired = [entry for entry in entries if (found := _unpacked(entry)) is None or found.expires_at <= now]
            if expired:
                store.edit_entries([_removal(entry) for entry in expired])


def _sample(store: Store, kind: str) -> list[Entry]:
    """Up to 200 entries from a random name on: from the first name on, live sessions would hide the expired ones."""
    entries = store.list_entries(kind, cursor=secrets.token_hex(8), limit=LARGEST_PAGE).items
    if len(entries) < LARGEST_PAGE:
        entries = [*entries, *store.list_entries(kind, limit=LARGEST_PAGE - len(entries)).items]
    return list({entry.name: entry for entry in entries}.values())


def id_of(cookie: str) -> str:
    """The public part of a session's cookie; it may be kept in memory and shown."""
    found = _COOKIE.fullmatch(cookie)
    return found[1] if found else ""


def live_ids(app: App, session_ids: Iterable[str]) -> set[str]:
    """Which of these sessions go on: neither logged out nor too old."""
    store = app.open()
    entries, now = store.get_entries(KIND, sorted(set(session_ids))), store.now()
    return {entry.name for entry in entries if (kept := _unpacked(entry)) is not None and kept.expires_at > now}


def fingerprint(admin_hash: str | None) -> str:
    """Distinguishes one server's own token from another, without revealing it."""
    return sha256(f"session:{admin_hash}".encode()).hexdigest() if admin_hash else ""


def _unpacked(entry: Entry) -> Session | None:
    try:
        return _decoder.decode(entry.data)
    except msgspec.MsgspecError:
        return None


def _removal(entry: Entry) -> EntryEdit:
    return EntryEdit(kind=entry.kind, name=entry.name, expect_version=entry.version, data=None)
