"""Defines the keys of schedules, tenants, sources, document queues and alerts in rota.yaml: each key's kind and
meaning.

Errors and the reference are made from these tables.
"""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from rota.config.kinds import (
    Bound,
    Callee,
    ChannelNames,
    Choice,
    DocumentsUrl,
    FieldPath,
    FineSpan,
    Flag,
    Kind,
    MailAddresses,
    Name,
    PartName,
    Pattern,
    Priority,
    Span,
    Text,
    WebhookSecret,
    WebUrl,
    Whole,
    Zone,
)
from rota.model.alerts.rule import MOST_LENGTH, WHENS
from rota.model.collection import HIGHEST, LOWEST, MOST_KEPT
from rota.model.jobs.retry import MOST_RETRIES
from rota.model.schedules.schedule import CATCHUPS, OVERLAPS
from rota.model.tenant import OnZoneChange

DIALECTS = ("unix", "quartz")
TIMES = ("text", "seconds", "milliseconds")

CRON = Text('cron text such as "0 9 * * mon-fri" or "@hourly"')
EVERY = Text("a duration such as 90s, 5m or 1h30m")
CALENDAR = Text('a rule such as {months: 1, at: "00:05", start: 2026-01-31}')
ONCE = Text("an instant such as 2026-10-14T09:00Z")


class Field(Struct, frozen=True):
    """One key."""

    kind: Kind
    meaning: str


TRIGGERS: dict[str, Field] = {
    "cron": Field(CRON, "When it runs: by a cron expression."),
    "every": Field(EVERY, "When it runs: every so often, counted from its start or creation."),
    "calendar": Field(CALENDAR, "When it runs: every so many days, weeks, months, quarters or years."),
    "once": Field(ONCE, "When it runs: at one instant."),
}
CALL: dict[str, Field] = {
    "args": Field(Text("a list of values"), "Arguments of the task, by place."),
    "kwargs": Field(Text("a mapping of names to values"), "Arguments of the task, by name."),
}
SCHEDULE: dict[str, Field] = {
    "task": Field(
        Name("task"), "What runs: a task of the app. Its last part is enough if only one task's name ends so."
    ),
    **TRIGGERS,
    "dialect": Field(Choice(DIALECTS), "How `cron` is read, if its fields do not decide it."),
    "tz": Field(Zone(), "The timezone of its times; else its tenant's, else the app's."),
    **CALL,
    "priority": Field(Priority(), "Of its jobs; else its tenant's, else the task's."),
    "queue": Field(Name("queue"), "Of its jobs; else its tenant's, else the task's."),
    "key": Field(Text(), "The unique key of its jobs: none is made while another job holds it. Else the task's."),
    "key_for": Field(FineSpan(), "How long the key holds after a job was made, even if that ends before."),
    "overlap": Field(Choice(OVERLAPS), "What becomes of a run that is due while the last one has not ended."),
    "catchup": Field(Choice(CATCHUPS), "Which missed runs are made up for."),
    "catchup_limit": Field(Whole(1, 10_000), "With `catchup: all`, at most so many."),
    "grace": Field(Span(), "From when on a run counts as missed."),
    "jitter": Field(Span(), "Runs are spread over this long."),
    "start": Field(Bound(), "No run before this day or instant."),
    "end": Field(Bound(), "No run after this day or instant."),
    "max_runs": Field(Whole(1, 1_000_000_000), "So many runs, then no more."),
    "run_on_start": Field(Flag(), "Whether it also runs once when it is first deployed."),
    "lookahead": Field(Span("31d"), "How long before they are due its jobs are made."),
    "tenant": Field(Name("tenant"), "Whose timezone and defaults it follows."),
    "enabled": Field(Flag(), "Whether it is on, until it is changed by hand."),
    "description": Field(Text(), "A text for people."),
}
TENANT: dict[str, Field] = {
    "tz": Field(Zone(), "The timezone of its schedules that name none."),
    "queue": Field(Name("queue"), "Of its schedules' jobs, if they name none."),
    "priority": Field(Priority(), "Of its schedules' jobs, if they name none."),
    "on_zone_change": Field(Choice(get_args(OnZoneChange)), "Whether the announced run survives a new timezone."),
    "description": Field(Text(), "A text for people."),
}
COLLECTION: dict[str, Field] = {
    "name": Field(PartName(), "What is kept in sync."),
    "schedule": Field(CRON, "When it is synced by itself; else its source's."),
    "dialect": Field(Choice(DIALECTS), "How `schedule` is read, if its fields do not decide it."),
    "tz": Field(Zone(), "The timezone of its schedule; else its source's, else the app's."),
    "priority": Field(Whole(LOWEST, HIGHEST), "Higher first."),
    "enabled": Field(Flag(), "Whether its schedule is on, until it is changed by hand."),
    "description": Field(Text(), "A text for people."),
}
SOURCE: dict[str, Field] = {
    "task": Field(Name("task"), "What syncs it: a task that is called with the source's and the collection's name."),
    "collections": Field(Text('a list such as [{name: orders, schedule: "@hourly"}]'), "What the source has."),
    "schedule": Field(CRON, "When collections are synced that have no schedule of their own."),
    "dialect": Field(Choice(DIALECTS), "How `schedule` is read, if its fields do not decide it."),
    "tz": Field(Zone(), "The timezone of its collections that name none; else the app's."),
    "keep": Field(Whole(1, MOST_KEPT), "Of each collection, the newest so many ended tasks are kept."),
    "retries": Field(Whole(0, MOST_RETRIES), "How often a failed sync is tried again before its next occurrence."),
    "timeout": Field(FineSpan(), "After which an attempt has failed; else the task's."),
    "queue": Field(Name("queue"), "Of its jobs; else the task's."),
}
DOCUMENT_FIELDS: dict[str, Field] = {
    "sleep_until": Field(FieldPath(), "When it is due; else `sleepUntil`."),
    "interval": Field(FieldPath(), "How it recurs; else `interval`."),
    "repeat_until": Field(FieldPath(), "It does not run after this time; else `repeatUntil`."),
    "auto_remove": Field(FieldPath(), "Whether it is deleted when it is done; else `autoRemove`."),
    "locked_until": Field(
        FieldPath(), "When its lock ends; else `lockedUntil`. Null, with `locked_by`: no such field."
    ),
    "locked_by": Field(FieldPath(), "Who holds its lock; else `lockedBy`."),
}
DOCUMENTS: dict[str, Field] = {
    "source": Field(DocumentsUrl(), "Where the documents are. A relative path of a file starts at rota.yaml."),
    "collection": Field(Text("the name of a collection or table"), "Which of its collections or tables."),
    "handler": Field(Callee(), "What is called with each due document, in the process of the queue."),
    "key": Field(Text("the name of a column"), "The column that holds the id; else `id`. Not for MongoDB."),
    "times": Field(Choice(TIMES), "How a SQLite table keeps times; else `text`."),
    "condition": Field(Text("a mapping such as {status: open}"), "Only documents for which this is true."),
    "fields": Field(Text("four, or a mapping such as {sleep_until: job.at}"), "Where a document keeps its schedule."),
    "concurrency": Field(Whole(1, 10_000), "So many handlers at once."),
    "lock_for": Field(Span(), "How long a document stays locked after its process has died."),
    "idle_delay": Field(Span(), "How often an idle queue looks for new documents."),
    "next_delay": Field(FineSpan(), "How long a slot rests after a document."),
    "reprocess_delay": Field(FineSpan(), "The least pause between a run and the next one of the same document."),
    "tz": Field(Zone(), "The timezone of intervals that name none; else the app's."),
}
ALERT: dict[str, Field] = {
    "when": Field(Choice(WHENS), "The condition."),
    "schedule": Field(Pattern("schedule"), "Which schedules, for `fails`, `late` and `no_success`; else all."),
    "queue": Field(Pattern("queue"), "Which queues, for `no_worker`, `oldest` and `length`; else all."),
    "node": Field(Pattern("node"), "Which nodes, for `node_gone`: an id begins with the name of its host; else all."),
    "after": Field(Span(), "The bound of the condition, or for how long it must hold."),
    "more_than": Field(Whole(0, MOST_LENGTH), "So many waiting jobs are still well, for `length`."),
    "channels": Field(ChannelNames(), "Where messages go; else to all channels."),
}
CHANNEL: dict[str, Field] = {
    "webhook": Field(WebUrl(), "A URL that gets each message as signed JSON."),
    "secret": Field(WebhookSecret(), "Signs the requests of this webhook; else `alerting.secret`."),
    "email": Field(MailAddresses(), "Who gets each message, through the server of `smtp`."),
}
HEARTBEAT: dict[str, Field] = {
    "url": Field(WebUrl(), "Called when a run succeeds; with `/fail` after it when a run fails."),
    "start": Field(Flag(), "Whether the URL is also called, with `/start` after it, when a run begins."),
}
CALENDAR_PARTS = ("days", "weeks", "months", "quarters", "years", "at", "start", "end", "on", "nth", "month_end")
