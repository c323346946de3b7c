"""Identifies clients. Credentials are compared in constant time; repeated failures are throttled, then refused."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections import Counter, OrderedDict
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rota.client.tokens import Identity, hash_of, id_in
from rota.errors import StoreError
from rota.sentences import sentence
from rota.web.origins import is_own_host, source_of
from rota.web.refusals import Refusal, code_of
from rota.web.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rota.app import App
    from rota.model.token import Role
    from rota.web.origins import Origin
    from rota.web.route import Route

log = logging.getLogger("rota.web")

FIRST_DELAY, LONGEST_DELAY = 0.05, 2.0  # seconds that a failed try waits for its answer
MOST_FAILURES = 20  # of one address, until it is turned away …
CALM = 60.0  # … for this long
MOST_DELAYED = 8  # tries of one address that wait at once
MOST_ADDRESSES = 10_000
KNOWN_FOR = 600.0  # seconds that a credential which was good is still tried where its address is turned away

ANYBODY = Identity("anonymous", "read")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="rota"'}


class Tries(NamedTuple):
    """Failed tries of one address."""

    number: int
    last: float


class Guard:
    """Slows down and turns away addresses that try bad credentials. It holds a bounded number of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: OrderedDict[str, Tries] = OrderedDict()
        self._delayed: dict[str, int] = {}
        self._under_way: dict[str, Counter[str]] = {}  # credentials that are being checked, by where they came from
        self._known: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str, credential: str) -> None:
        """Turn away a source that has tried too often; a credential that was good lately may still be tried.

        Each other credential that is being checked counts as a failure, so that many at once are no way around.
        """
        if credential in self._known and self._known[credential] > self._clock() - KNOWN_FOR:
            return
        source = source_of(address)
        others = len(self._under_way.get(source, Counter()).keys() - {credential})
        seen = self._tries.get(source)
        left = CALM if seen is None else seen.last + CALM - self._clock()
        if seen is not None and left <= 0:
            del self._tries[source]
            seen = None
        if seen is not None and seen.number >= MOST_FAILURES:
            raise _turned_away(left)
        if others + (seen.number if seen is not None else 0) >= MOST_FAILURES:
            raise _turned_away(LONGEST_DELAY)

    @contextmanager
    def checking(self, address: str, credential: str) -> Iterator[None]:
        """Count a credential while it is being checked."""
        source = source_of(address)
        under_way = self._under_way.setdefault(source, Counter())
        under_way[credential] += 1
        try:
            yield
        finally:
            under_way[credential] -= 1
            if not under_way[credential]:
                del under_way[credential]
            if not under_way:
                self._under_way.pop(source, None)

    def note_good(self, credential: str) -> None:
        self._known[credential] = self._clock()
        self._known.move_to_end(credential)
        _bound(self._known)

    async def note_bad(self, address: str) -> None:
        """Remember a failed try, and let it wait: longer each time."""
        address = source_of(address)
        count = self._tries[address].number + 1 if address in self._tries else 1
        self._tries[address] = Tries(count, self._clock())
        self._tries.move_to_end(address)
        _bound(self._tries)
        if self._delayed.get(address, 0) >= MOST_DELAYED:
            raise _turned_away(LONGEST_DELAY)
        self._delayed[address] = self._delayed.get(address, 0) + 1
        try:
            await asyncio.sleep(min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(count - 1, 10)))
        finally:
            self._delayed[address] -= 1
            if not self._delayed[address]:
                del self._delayed[address]


class AccessControl:
    """Lets requests in whose bearer may do what their route asks for."""

    def __init__(
        self, app: App, *, token: str | None, is_read_only: bool, anonymous: bool, hosts: Sequence[str] = ()
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._admin = hash_of(token) if token else None
        self.is_read_only = is_read_only
        self._anonymous = anonymous
        self.guard = Guard()
        self.sessions = Sessions(app, self._admin)

    async def admit(
        self, route: Route, headers: Mapping[str, str], origin: Origin, person: Identity | None = None
    ) -> Identity:
        """Who asks; a Refusal if they may not. The person is the one whom the site knows, if no token says more."""
        if route.role is None:
            return ANYBODY
        secret = secret_in(headers)
        if secret is not None:
            who = await self.identify(secret, origin.address)
        elif person is not None:
            who = person
        else:
            who = self.anonymous(origin, headers.get("host"))
        self.check_role(who, route.role, is_change=route.is_change)
        return who

    def check_role(self, who: Identity, role: Role, *, is_change: bool) -> None:
        """Refuse what a role may not do, and every change where this server only shows."""
        if self.is_read_only and is_change:
            raise Refusal(403, "read_only", "this server only shows: it was started with --read-only")
        if not who.may(role):
            raise Refusal(
                403,
                "forbidden",
                sentence(
                    "access.role",
                    "this needs the role {role}; {name} has {has}",
                    role=role,
                    name=who.name,
                    has=who.role,
                ),
            )

    async def identify(self, secret: str, address: str) -> Identity:
        """Who bears a token; a Refusal, after a delay, if nobody does."""
        digest = hash_of(secret)
        self.guard.check(address, digest)
        is_admin = self._admin is not None and hmac.compare_digest(self._admin, digest)
        if is_admin:
            who: Identity | None = Identity("admin", "admin")
        else:
            with self.guard.checking(address, digest):
                who = await self._known(secret)
        if who is None:
            log.warning(
                "a bad token was refused: it came from %s, token id %s", address or "?", id_in(secret) or "none"
            )
            await self.guard.note_bad(address)
            raise Refusal(
                401,
                "bad_token",
                "the token is unknown, revoked or expired; create one with `rota token create`",
                headers=CHALLENGE,
            )
        self.guard.note_good(digest)
        return who

    async def _known(self, secret: str) -> Identity | None:
        """The bearer of a token. If the store is away, this is unknown, and no anonymous client learns where it is."""
        try:
            return await self._app.aio.call(partial(self._app.tokens.check, secret))
        except StoreError as err:
            log.warning("a token could not be checked: %s", err)
            raise Refusal(503, code_of(err), "the store does not answer; try again later") from err

    def anonymous(self, origin: Origin, host: str | None) -> Identity:
        """Who asks without a credential: nobody, unless readers on this machine need none."""
        if self._anonymous and origin.is_local:
            if is_own_host(host, self._hosts):
                return ANYBODY
            message = (
                f"reading without a token works under a loopback name alone, not as {(host or '')[:100]!r}; name it in "
                "web.hosts, or send a token"
            )
            raise Refusal(403, "unknown_host", message, field="Host")
        why = "only clients on this machine may read without a token" if self._anonymous else "a token is needed"
        message = f"{why}: send Authorization: Bearer TOKEN; `rota token create` makes one"
        raise Refusal(401, "token_missing", message, headers=CHALLENGE)


def secret_in(headers: Mapping[str, str]) -> str | None:
    """The credential that a request brings. One that cannot be read is a bad one, not none."""
    said = headers.get("authorization")
    if said is None:
        return headers.get("x-admin-token")
    scheme, _, secret = said.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _turned_away(seconds: float) -> Refusal:
    wait = max(1, round(seconds))
    return Refusal(
        429,
        "too_many_tries",
        f"too many bad tokens came from this address; wait {wait} s",
        headers={"Retry-After": str(wait)},
    )


def _bound(kept: OrderedDict[str, object] | OrderedDict[str, Tries] | OrderedDict[str, float]) -> None:
    while len(kept) > MOST_ADDRESSES:
        kept.popitem(last=False)
