"""Decides how often a failed job is tried again, and how long it waits in between."""

from __future__ import annotations

from typing import NamedTuple

from rota.errors import BadOption
from rota.model.micros import SECOND, fine_span_of

MOST_RETRIES = 1_000
MAX_DEATHS = 3  # a job that this many workers died of fails: it is probably what kills them
UNKNOWN_TASK_PAUSE = 30 * SECOND  # how long a job waits for a worker that knows its task


class Backoff(NamedTuple):
    """Exponential: the first pause, what each next one is multiplied by, and the longest. Microseconds."""

    first: int = 2 * SECOND
    factor: float = 3.0
    longest: int = 3_600 * SECOND

    def pause(self, failures: int, random: float) -> int:
        """The pause after that many failures. `random` in [0, 1) takes up to half off, so that retries spread out."""
        grown = self.first * self.factor ** min(failures - 1, 64)
        return int(min(grown, self.longest) * (1 - random / 2))


class RetryPolicy(NamedTuple):
    """The limits of a task's retries: how many, after which pauses, and for which exceptions."""

    retries: int = 3
    backoff: Backoff = Backoff()
    give_up_on: tuple[type[BaseException], ...] = ()
    retry_on: tuple[type[BaseException], ...] = (Exception,)

    def may_retry(self, error: BaseException) -> bool:
        """Whether this kind of exception is worth another attempt."""
        return isinstance(error, self.retry_on) and not isinstance(error, self.give_up_on)


def backoff(first: str = "2s", *, factor: float = 3.0, longest: str = "1h") -> Backoff:
    """A back-off in the words of the API: `backoff("10s", factor=2, longest="30m")`."""
    if not 1 <= factor <= 100:
        raise BadOption(f"backoff factor={factor!r} must lie between 1 and 100")
    return Backoff(fine_span_of(first, least=1), float(factor), fine_span_of(longest, least=1))
