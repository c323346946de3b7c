"""Every error that Rota raises on purpose: one tree, each class a fact.

RotaError
├── BadTrigger (ValueError)     a rule for time that cannot be understood
│   ├── BadCron                 a cron expression as a whole
│   │   └── BadCronField        one field of it
│   ├── BadInterval             an every, calendar or once rule
│   ├── BadDuration             text such as "1h30m"
│   ├── UnknownZone             a timezone that tzdata does not have
│   ├── NaiveDatetime           a datetime without a timezone
│   └── BadInstant              an instant outside the years 1970 to 2200
├── BadOption (ValueError)      an option of a task, job or schedule that makes no sense
│   ├── BadName                 a name with characters that names may not have
│   ├── DuplicateName           a task or schedule that is registered already
│   └── PathThroughList         a field's path that leads through a list, in a queue of documents
├── BadDocument (ValueError)    a document whose interval, end or other fields cannot be understood
├── BadPayload (TypeError)      arguments that cannot be kept as JSON
│   └── PayloadTooLarge         … or are larger than 256 KiB
├── BadSettings (ValueError)    a rota.yaml or a ROTA_* variable that makes no sense
├── BadTarget                   a TARGET from which no app can be loaded
├── NotFound (LookupError)
│   ├── JobNotFound
│   ├── ScheduleNotFound
│   ├── TenantNotFound
│   ├── TokenNotFound
│   ├── AlertNotFound           an alert, an alert rule or a channel
│   ├── SourceNotFound
│   ├── CollectionNotFound
│   ├── DocumentQueueNotFound
│   ├── DocumentNotFound
│   ├── TaskNotFound            a work item of a collection
│   └── UnknownTask             a task that no app here has registered
├── Refused                     a change that the state of things does not allow
│   ├── UnlawfulMove            a move that the table of states does not have
│   ├── VersionConflict         another caller changed it first
│   └── LockHeld                another owner has the lock
├── BadResult (TypeError)       in a job's error: what its task returned cannot be kept as JSON, or is too large
├── JobFailed                   a result was asked of a job that failed or was cancelled
├── ResultTimeout (TimeoutError)    a result did not come in time
├── MiddlewareError             a middleware that did not do its part
├── AlertNotSent                a channel or a heartbeat URL did not take a message
├── LockLost                    a lock was not extended in time
├── LeaseLost                   a worker no longer owns the job that it runs
└── StoreError                  the store cannot do its part
    ├── StoreUnavailable        out of reach, locked or full: worth another try
    │   └── StoreReplaced       its file was replaced, deleted or set back while it was in use
    ├── StoreSealed              all that it held was copied, or is being copied, to another store
    ├── BadStoreUrl             a URL that names no store
    └── SchemaMismatch          the store was made by a newer Rota, or by something else
"""

from __future__ import annotations

from rota.sentences import Said, sentence, with_fix


class RotaError(Exception):
    """The root of all errors that Rota raises on purpose."""

    exit_code = 1  # the exit code of the command line


class BadTrigger(RotaError, ValueError):
    """A rule for time that cannot be understood; the message has the text, the mistake, and the fix if there is one."""

    exit_code = 2

    def __init__(self, reason: Said, *, text: str = "", fix: Said = "") -> None:
        self.reason = str(reason)
        self.text = text
        self.fix = str(fix)
        super().__init__(self._message(with_fix(reason, fix)))

    def _message(self, said: Said) -> Said:
        return said


class BadCron(BadTrigger):
    """A cron expression that is wrong as a whole: field count, two readings, or no date that satisfies it."""


CRON_FIELDS = {
    "second": sentence("cron.name_second", "second"),
    "minute": sentence("cron.name_minute", "minute"),
    "hour": sentence("cron.name_hour", "hour"),
    "day-of-month": sentence("cron.name_day", "day-of-month"),
    "month": sentence("cron.name_month", "month"),
    "day-of-week": sentence("cron.name_weekday", "day-of-week"),
    "year": sentence("cron.name_year", "year"),
}


class BadCronField(BadCron):
    """One field of a cron expression that is wrong."""

    def __init__(self, field: str, text: str, reason: Said, *, fix: Said = "") -> None:
        self.field = field
        super().__init__(reason, text=text, fix=fix)

    def _message(self, said: Said) -> Said:
        field = CRON_FIELDS.get(self.field, self.field)
        return sentence("cron.field", "{field} field '{text}': {said}", field=field, text=self.text, said=said)


class BadInterval(BadTrigger):
    """An every, calendar or once rule whose parts do not fit together."""


class BadDuration(BadTrigger):
    """A duration that is not text such as "90s" or "1h30m", nor a timedelta."""


class UnknownZone(BadTrigger):
    """A timezone name that tzdata does not know."""


class NaiveDatetime(BadTrigger):
    """A datetime without a timezone: the same digits are another instant on another machine."""


class BadInstant(BadTrigger):
    """An instant outside the years that Rota accepts; `field` names the option or parameter."""

    def __init__(self, reason: Said, *, text: str = "", fix: Said = "", field: str = "") -> None:
        self.field = field
        super().__init__(reason, text=text, fix=fix)


class BadOption(RotaError, ValueError):
    """An option of a task, job or schedule that makes no sense."""

    exit_code = 2


class BadName(BadOption):
    """A name with characters that names may not have."""


class DuplicateName(BadOption):
    """A task or schedule that is registered already."""


class PathThroughList(BadOption):
    """A path that leads through a list: it names many values, and a lock needs one."""


class BadDocument(RotaError, ValueError):
    """A document of a queue whose fields cannot be understood, so it did not run; it is tried again later."""


class BadPayload(RotaError, TypeError):
    """Arguments that cannot be stored as JSON."""

    exit_code = 2


class PayloadTooLarge(BadPayload):
    """Arguments that are larger than a store accepts."""


class BadResult(RotaError, TypeError):
    """A task returned a value that JSON cannot store, or more than 256 KiB; its job has failed with this error."""


class BadSettings(RotaError, ValueError):
    """Settings that make no sense: each problem has its position, the value, and what is expected."""

    exit_code = 2

    def __init__(self, *complaints: str) -> None:
        self.complaints = complaints
        more = f" (and {len(complaints) - 1} more: `rota lint` shows all)" if len(complaints) > 1 else ""
        super().__init__(f"{complaints[0]}{more}")


class BadTarget(RotaError):
    """A TARGET from which no app can be loaded."""

    exit_code = 3


class NotFound(RotaError, LookupError):
    """Something that was requested by name does not exist."""

    exit_code = 5


class JobNotFound(NotFound):
    """No job has that id (or it was pruned)."""


class ScheduleNotFound(NotFound):
    """No schedule has that id."""


class TenantNotFound(NotFound):
    """No tenant has that name."""


class SourceNotFound(NotFound):
    """No source has that name."""


class CollectionNotFound(NotFound):
    """A source has no collection of that name."""


class DocumentQueueNotFound(NotFound):
    """No queue of documents has that name."""


class DocumentNotFound(NotFound):
    """A queue of documents has no document of that id, or it is not scheduled."""


class TaskNotFound(NotFound):
    """No task of a collection has that id (or it was pruned)."""


class TokenNotFound(NotFound):
    """No token has that id."""


class AlertNotFound(NotFound):
    """No alert, alert rule or channel has that id or name."""


class UnknownTask(NotFound):
    """No app here has registered a task of that name."""


class Refused(RotaError):
    """A change that the current state does not allow."""

    exit_code = 6


class UnlawfulMove(Refused):
    """A move that the table of states does not have."""


class VersionConflict(Refused):
    """Another caller changed it first."""


class LockHeld(Refused):
    """Another owner has the lock."""


class LockLost(RotaError):
    """A lock was not extended in time; another owner may have it."""


class JobFailed(RotaError):
    """A result was requested of a job that failed or was cancelled; the error has the reason."""

    exit_code = 7


class ResultTimeout(RotaError, TimeoutError):
    """A result did not come in time; the job continues."""

    exit_code = 8
    job_id: str = ""


class MiddlewareError(RotaError):
    """A middleware did not call the next step, or did not return its result."""


class AlertNotSent(RotaError):
    """A channel or a heartbeat URL did not accept a message; the error has the reason."""


class LeaseLost(RotaError):
    """A worker no longer owns the job that it runs."""


class StoreError(RotaError):
    """The store cannot carry out a call."""

    exit_code = 4


class StoreUnavailable(StoreError):
    """The store is out of reach, locked or full: the same call may succeed later."""


class StoreReplaced(StoreUnavailable):
    """The store's file was replaced, deleted or set back while it was in use; the last writes may be lost."""


class StoreSealed(StoreError):
    """The store accepts no more work: it was copied, or is being copied, to another one."""


class BadStoreUrl(StoreError):
    """A URL that names no store."""


class SchemaMismatch(StoreError):
    """The store was made by a newer Rota, or by something else."""
