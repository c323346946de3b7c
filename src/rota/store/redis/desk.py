"""The desk: where drafts are read for and committed, and what conflicts is decided anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.errors import StoreUnavailable
from rota.failpoints import reach
from rota.store.redis.draft import Draft
from rota.store.redis.packing import Sight, sights_of
from rota.store.redis.wire import wired

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.store.redis.link import Link, Reply
    from rota.store.redis.places import Command

WIDEST_READ = 1_000  # jobs in one call
MOST_ITEMS = 250  # drafts in one commit: a script must not hold up the others for long
MOST_TURNS = 100  # how often a decision is made anew before its caller is told to come back


class Desk:
    """Reads what decisions need, and writes them where they still hold."""

    def __init__(self, link: Link) -> None:
        self.link = link

    def look(
        self, ids: Sequence[str] = (), *commands: Command, reserve: int = 0, now: int | None = None
    ) -> tuple[int, dict[str, Sight | None], list[Any], int]:
        """The clock, jobs, answers to commands, and the place before the first that was reserved: at one instant."""
        reply = self._look(ids[:WIDEST_READ], commands, reserve, now)
        found, raw, base = reply.body
        sights = sights_of(raw)
        for start in range(WIDEST_READ, len(ids), WIDEST_READ):
            sights |= self.sights(ids[start : start + WIDEST_READ])
        return reply.now, sights, found, base

    def sights(self, ids: Sequence[str]) -> dict[str, Sight | None]:
        return sights_of(self._look(ids, (), 0, None).body[1])

    def ask(self, *commands: Command) -> list[Any]:
        found: list[Any] = self._look((), commands, 0, None).body[0]
        return found

    def reserve(self) -> int:
        return int(self._look((), (), 1, None).body[2]) + 1

    def commit(self, verb: str, drafts: Sequence[Draft], *, is_work: bool) -> list[bool]:
        """Write each draft whole or, where what it was decided on has moved on, not at all."""
        held: list[bool] = []
        for start in range(0, len(drafts), MOST_ITEMS):
            items = [draft.item() for draft in drafts[start : start + MOST_ITEMS]]
            reach(f"{verb}.before_commit")
            held += map(bool, self.link.call("commit", items=items, is_work=is_work).body)
            reach(f"{verb}.after_commit")
        return held

    def write(self, *commands: Command, channels: Sequence[str] = (), is_work: bool = False) -> None:
        """Write what needs no guard."""
        draft = Draft(self, 0)
        for command in commands:
            draft.write(*command)
        for channel in channels:
            draft.notify(channel)
        self.link.call("commit", items=[draft.item()], is_work=is_work)

    def settle_down(self, turn: Callable[[], bool]) -> None:
        """Decide and commit until nothing is left that has moved on in between."""
        for _ in range(MOST_TURNS):
            if turn():
                return
        raise StoreUnavailable(
            f"{self.link.place}: what was to be written was changed by others {MOST_TURNS} times in a row; try again"
        )

    def _look(self, ids: Sequence[str], commands: Sequence[Command], reserve: int, now: int | None) -> Reply:
        return self.link.call("look", ids=list(ids), commands=wired(commands), reserve=reserve, now=text_of(now))


def text_of(now: int | None) -> str | None:
    """An instant as scripts take it: as text, which loses no digit."""
    return None if now is None else str(now)
