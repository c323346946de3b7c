"""Switches items of django-celery-beat off and on in its tables, and asks beat whether it has noticed.

Beat reads `last_update` in every turn of its loop, before it sends anything. If the value has risen, it first writes
the `last_run_at` that it had only in memory, then reads all items again. A question is a one-off item that has run
already, and that expired long ago: beat sends nothing for it and sets `enabled` to false as soon as it has read it. So
an answer says that beat has written what it had sent before, and that it knows everything that was committed before the
question. Versions before 2.8 look at one-off alone.

An item is held with a start time in the far future instead of `enabled = false`: Django's model clears `last_run_at` of
an item that is off whenever beat writes it, and that time is what a take-over needs.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rota.clock import utc_now
from rota.importers.django_celery_beat import ROWS, row_of
from rota.importers.django_database import instant_of

if TYPE_CHECKING:
    from rota.importers.django_celery_beat import PeriodicTask
    from rota.importers.django_database import DjangoDatabase

QUESTION = "rota-take-over-question-"  # the first part of a question's name; an id follows
PURPOSE = "asks beat whether it has seen a change; `rota import django-celery-beat` removes it"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


class BeatSwitches:
    """The changes that a take-over makes in the tables, each in one transaction."""

    def __init__(self, database: DjangoDatabase) -> None:
        self._database = database

    def read(self, row_id: int) -> PeriodicTask | None:
        """One item as it is now."""
        found = self._database.rows(f"{ROWS} WHERE t.id = %s", [row_id])
        return row_of(found[0]) if found else None

    def hold(self, row_id: int, before: datetime | None, until: datetime) -> bool:
        """Keep beat from sending an item before `until`; False if it is off or has another start time."""
        with self._database.transaction():
            row = self._locked(row_id)
            if row is None or not row["enabled"] or instant_of(row["start_time"]) not in {before, until}:
                return False
            self._database.rows(
                "UPDATE django_celery_beat_periodictask SET start_time = %s WHERE id = %s", [until, row_id]
            )
            self._touch()
        return True

    def release(self, row_id: int, before: datetime | None, until: datetime) -> None:
        """Let beat send a held item again. Other items are not changed."""
        with self._database.transaction():
            row = self._locked(row_id)
            if row is not None and instant_of(row["start_time"]) == until:
                self._database.rows(
                    "UPDATE django_celery_beat_periodictask SET start_time = %s WHERE id = %s", [before, row_id]
                )
                self._touch()

    def switch_off(self, row_id: int, before: datetime | None, until: datetime) -> bool:
        """Turn off an item that is held, with the start time that it had; False if it was edited since: it is
        on and not held, or off and still held."""
        with self._database.transaction():
            row = self._locked(row_id)
            if row is None:
                return True  # it was deleted
            if not row["enabled"]:
                return instant_of(row["start_time"]) != until  # done already
            if instant_of(row["start_time"]) != until:
                return False
            self._database.rows(
                "UPDATE django_celery_beat_periodictask SET enabled = %s, start_time = %s WHERE id = %s",
                [False, before, row_id],
            )
            self._touch()
        return True

    def switch_on(self, row_id: int, ran_through: datetime | None) -> bool:
        """Turn on an item that is off, as if beat had run it last at that time; None: as if it had never run. False if
        it is not there."""
        with self._database.transaction():
            row = self._locked(row_id)
            if row is None:
                return False
            if not row["enabled"]:
                self._database.rows(
                    "UPDATE django_celery_beat_periodictask SET enabled = %s, last_run_at = %s WHERE id = %s",
                    [True, ran_through, row_id],
                )
                self._touch()
        return True

    def ask(self) -> str:
        """Write a question to beat; return its name."""
        name = f"{QUESTION}{secrets.token_hex(8)}"
        with self._database.transaction():
            rule = self._question_rule()
            self._database.rows(
                "INSERT INTO django_celery_beat_periodictask "
                "(name, task, args, kwargs, headers, interval_id, expires, enabled, one_off, "
                "total_run_count, date_changed, description) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [name, "celery.ping", "[]", "{}", "{}", rule, LONG_AGO, True, True, 1, utc_now(), PURPOSE],
            )
            self._touch()
        return name

    def is_answered(self, question: str) -> bool:
        found = self._database.rows("SELECT enabled FROM django_celery_beat_periodictask WHERE name = %s", [question])
        return not found or not found[0]["enabled"]

    def remind(self) -> None:
        """Have beat read everything again: one that was starting may have missed the first change."""
        with self._database.transaction():
            self._touch()

    def forget_answered(self) -> None:
        """Delete answered questions. Beat may have an unanswered one in memory, and would write it again."""
        with self._database.transaction():
            like = f"{QUESTION}%"
            rules = self._database.rows(
                "SELECT DISTINCT interval_id FROM django_celery_beat_periodictask WHERE name LIKE %s", [like]
            )
            self._database.rows(
                "DELETE FROM django_celery_beat_periodictask WHERE name LIKE %s AND enabled = %s", [like, False]
            )
            for rule in rules:
                self._database.rows(
                    "DELETE FROM django_celery_beat_intervalschedule WHERE id = %s AND NOT EXISTS "
                    "(SELECT 1 FROM django_celery_beat_periodictask t "
                    "WHERE t.interval_id = django_celery_beat_intervalschedule.id)",
                    [rule["interval_id"]],
                )

    def _question_rule(self) -> int:
        """An interval of its own: beat leaves out items by crontabs of other hours when it reads."""
        known = self._database.rows(
            "SELECT interval_id FROM django_celery_beat_periodictask WHERE name LIKE %s LIMIT 1", [f"{QUESTION}%"]
        )
        if known:
            return int(known[0]["interval_id"])
        made = self._database.rows(
            "INSERT INTO django_celery_beat_intervalschedule (every, period) VALUES (1, 'days') RETURNING id"
        )
        return int(made[0]["id"])

    def _locked(self, row_id: int) -> dict[str, object] | None:
        found = self._database.locked(
            "SELECT enabled, start_time FROM django_celery_beat_periodictask WHERE id = %s", [row_id]
        )
        return found[0] if found else None

    def _touch(self) -> None:
        """Say that something changed. Beat compares the value with the one it knows: it must be later, whatever this
        machine's clock says, and no more than needed, so that the next change by Django's clock is later again."""
        found = self._database.locked("SELECT last_update FROM django_celery_beat_periodictasks WHERE ident = 1")
        if not found:
            self._database.rows(
                "INSERT INTO django_celery_beat_periodictasks (ident, last_update) VALUES (1, %s)", [utc_now()]
            )
            return
        known = instant_of(found[0]["last_update"])
        later = TICK + (known or LONG_AGO)
        self._database.rows("UPDATE django_celery_beat_periodictasks SET last_update = %s WHERE ident = 1", [later])
