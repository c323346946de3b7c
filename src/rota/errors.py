"""Every error that Rota raises on purpose: one tree, each class a fact.

RotaError
└── BadTrigger (ValueError)     a rule for time that cannot be understood
    ├── BadCron                 a cron expression as a whole
    │   └── BadCronField        one field of it
    ├── BadInterval             an every, calendar or once rule
    ├── BadDuration             text such as "1h30m"
    ├── UnknownZone             a timezone that tzdata does not have
    └── NaiveDatetime           a datetime without a timezone
"""

from __future__ import annotations


class RotaError(Exception):
    """The root of all errors that Rota raises on purpose."""


class BadTrigger(RotaError, ValueError):
    """A rule for time that cannot be understood; says what was got, why it is wrong, and the fix where there is one."""

    def __init__(self, reason: str, *, text: str = "", fix: str = "") -> None:
        self.reason = reason
        self.text = text
        self.fix = fix
        super().__init__(self._message())

    def _message(self) -> str:
        return f"{self.reason}; {self.fix}" if self.fix else self.reason


class BadCron(BadTrigger):
    """A cron expression that is wrong as a whole: field count, two readings, or no date that satisfies it."""


class BadCronField(BadCron):
    """One field of a cron expression that is wrong."""

    def __init__(self, field: str, text: str, reason: str, *, fix: str = "") -> None:
        self.field = field
        super().__init__(reason, text=text, fix=fix)

    def _message(self) -> str:
        return f"{self.field} field '{self.text}': {super()._message()}"


class BadInterval(BadTrigger):
    """An every, calendar or once rule whose parts do not fit together."""


class BadDuration(BadTrigger):
    """A duration that is not text such as "90s" or "1h30m", nor a timedelta."""


class UnknownZone(BadTrigger):
    """A timezone name that tzdata does not know."""


class NaiveDatetime(BadTrigger):
    """A datetime without a timezone: the same digits are another instant on another machine."""
