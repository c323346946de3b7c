"""Checks the alert rules of an app every few seconds, records incidents, and sends the messages about them.

It runs in every node. Of the nodes of an app, the one that first renews the record of the last check does this check.
Each incident is an entry of its own, changed by compare-and-set: only the node whose change was accepted sends. A
message that was recorded and not reported as sent within two minutes is sent by another node.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rota import failpoints
from rota.alerts.reading import read_incidents, read_silences, read_snapshot
from rota.alerts.sending_threads import SendingThreads
from rota.alerts.starter import LOOK_EVERY
from rota.alerts.stored_rules import read_stored_rules
from rota.engine.events import about_alert
from rota.engine.service import Service
from rota.errors import AlertNotSent, StoreError, StoreSealed
from rota.inspector.reading import all_entries
from rota.model.alerts.decide import TRY_FOR, Context, decide, delivered, limits_reached
from rota.model.alerts.findings import shortened
from rota.model.alerts.incident import (
    KIND,
    SILENCE_KIND,
    WATCH_KIND,
    Watch,
    pack,
    unpack_incident,
    unpack_silence,
    unpack_watch,
)
from rota.model.alerts.message import alert_of
from rota.model.alerts.stored_rule import replaced, rules_in_force, where_declared
from rota.model.entry import EntryEdit
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from rota.alerts.plan import AlertPlan
    from rota.alerts.sender import Sender
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.model.alerts.decide import IncidentChange
    from rota.model.alerts.incident import Delivery, Incident
    from rota.model.alerts.rule import AlertRule
    from rota.model.alerts.stored_rule import KeptRule
    from rota.store.contract import Store

log = logging.getLogger("rota.alerts")

BATCH = 100  # edits in one call
CHANNEL_THREADS = 2  # one message that hangs leaves a thread for the others of its channel
MOST_RACES = 5  # times that a result is written again because another node changed the entry
SILENCE_KEPT_FOR = 24 * 3600 * SECOND  # a silence that is over is shown for a day


class Check(NamedTuple):
    """One check of the rules, which this node does."""

    since: int | None  # the end of the period that earlier checks have recorded; None: there was none


class AlertWatch(Service):
    """The alert rules of one app, in one node."""

    name = "alert watch"

    def __init__(
        self, store: Store, events: Events, clock: StoreClock, plan: AlertPlan, sender: Sender, *, app: str, node: str
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._plan = plan
        self._sender = sender
        self._app = app
        self._node = node
        self._every = plan.settings.alerting.every
        self.threads = SendingThreads("rota-alert", each=CHANNEL_THREADS)
        self._rules: dict[str, AlertRule] = dict(plan.rules)  # as the last check found them, stored ones included
        self._warned: set[str] = set()  # the warnings of the last check

    def turn(self) -> float:
        pause = self._every / SECOND
        if not self._rules and not self._read_rules():
            return LOOK_EVERY
        asked_at = self.clock.monotonic()
        now = self._store.now()
        self.clock.sync(now, asked_at)
        try:
            check = self._claim_check(now)
            if check is not None:
                self.record(self.decide(now, check.since), now)
                self._finish_check(now)
        except StoreSealed:
            return pause  # it is sealed on purpose
        return pause

    def close(self) -> None:
        self.threads.wait_until_idle()
        self.threads.close()

    def _claim_check(self, now: int) -> Check | None:
        """The check that this node does now; None if another node does it, or did it just before."""
        found = self._store.get_entries(WATCH_KIND, [self._app])
        last = unpack_watch(found[0].data) if found else None
        if last is not None and 0 <= now - last.at < self._every * 8 // 10:
            return None
        since = None if last is None else last.at if last.through is None else last.through
        data = pack(Watch(at=now, by=self._node, through=since or 0))
        version = found[0].version if found else 0
        refused = self._store.edit_entries(
            [EntryEdit(kind=WATCH_KIND, name=self._app, expect_version=version, data=data)]
        )
        return None if refused else Check(since=since or None)

    def _finish_check(self, now: int) -> None:
        """Store the time up to which findings are recorded. A check that is cut off does not, so that the next one
        finds the failures again."""
        found = self._store.get_entries(WATCH_KIND, [self._app])
        last = unpack_watch(found[0].data) if found else None
        if last is None or (last.at, last.by) != (now, self._node):
            return
        data = pack(Watch(at=now, by=self._node, through=now))
        self._store.edit_entries(
            [EntryEdit(kind=WATCH_KIND, name=self._app, expect_version=found[0].version, data=data)]
        )

    def decide(self, now: int, since: int | None) -> list[IncidentChange]:
        """The changes of incidents, from the present state of the store and its recorded incidents."""
        kept_rules = read_stored_rules(self._store)
        self._rules = rules_in_force(self._app, self._plan.rules, kept_rules)
        rules = list(self._rules.values())
        silences = read_silences(self._store)
        kept = read_incidents(self._store)
        seen = read_snapshot(self._store, rules, now, since)
        if any(now - silence.until > SILENCE_KEPT_FOR for silence in silences.values()):
            self._forget_silences(now)
        self._warn(limits_reached(rules, seen) | self._of_stored(kept_rules))
        channels = tuple(self._plan.channels)
        busy = frozenset(name for name in channels if self.threads.is_busy(name))
        context = Context(app=self._app, node=self._node, channels=channels, silences=silences, now=now, busy=busy)
        return decide(rules, seen, kept, context)

    def record(self, changes: list[IncidentChange], now: int) -> None:
        """Record changes, and send the messages of those that were accepted."""
        for start in range(0, len(changes), BATCH):
            self._record(changes[start : start + BATCH], now)

    def _record(self, changes: list[IncidentChange], now: int) -> None:
        edits = [
            EntryEdit(
                kind=KIND,
                name=change.id,
                expect_version=change.version,
                data=None if change.after is None else pack(change.after),
            )
            for change in changes
        ]
        refused = set(self._store.edit_entries(edits))
        accepted = [change for change in changes if change.id not in refused]
        failpoints.reach("alert.recorded")
        for change in accepted:
            self._emit_and_send(change, now)

    def _emit_and_send(self, change: IncidentChange, now: int) -> None:
        incident = change.after
        if incident is None:
            return
        state_before = None if change.before is None else (change.before.number, change.before.state)
        if (incident.number, incident.state) != state_before and incident.state != "pending":
            if incident.state == "open":
                self.events.emit("alert.raised", now, **about_alert(incident))
            else:
                self.events.emit("alert.recovered", now, **about_alert(incident))
        for delivery in change.send:
            self.threads.call(delivery.channel, partial(self._deliver, incident, delivery))

    def _deliver(self, incident: Incident, delivery: Delivery) -> None:
        if self.clock.now() > delivery.claimed_until - TRY_FOR:
            return  # it has waited behind others for so long that the next check claims it again
        channel = self._plan.channels[delivery.channel]
        error = ""
        try:
            self._sender.send(channel, alert_of(incident, delivery.message, delivery.channel))
        except AlertNotSent as err:
            error = shortened(str(err)) or "its error has no text"
        try:
            self._report(incident, delivery, error)
        except StoreError:
            return  # the claim expires, and the message is sent again: twice is better than never

    def _report(self, incident: Incident, delivery: Delivery, error: str) -> None:
        for _ in range(MOST_RACES):
            found = self._store.get_entries(KIND, [incident.id])
            current = unpack_incident(found[0].data) if found else None
            if current is None:
                return
            now = self.clock.now()
            after = delivered(current, incident.number, delivery.channel, delivery.message, error, now)
            if after is None:
                return
            edit = EntryEdit(kind=KIND, name=incident.id, expect_version=found[0].version, data=pack(after))
            if not self._store.edit_entries([edit]):
                self._emit_failure(after, delivery, error, now)
                return

    def _emit_failure(self, incident: Incident, delivery: Delivery, error: str, now: int) -> None:
        if not error:
            return
        given_up = any(
            (one.channel, one.message, one.state) == (delivery.channel, delivery.message, "failed")
            for one in incident.deliveries
        )
        self.events.emit(
            "alert.undelivered",
            now,
            **about_alert(incident),
            channel=delivery.channel,
            message=delivery.message,
            error=error,
            is_given_up=given_up,
        )

    def _read_rules(self) -> dict[str, AlertRule]:
        """The rules of an app that had none at the last check; one call."""
        self._rules = rules_in_force(self._app, self._plan.rules, read_stored_rules(self._store))
        return self._rules

    def _of_stored(self, kept: dict[str, KeptRule]) -> set[str]:
        """The problems with stored rules, in words."""
        declared = self._plan.rules
        said = {
            f"alert rule {name} is declared ({where_declared(declared[name])}) and stored; the declared one is used; "
            f"`rota alerts remove {name}` removes the other"
            for name in replaced(self._app, declared, kept)
        }
        return said | {
            f"stored alert rule {name}: {self._plan.unknown_channels(rule)}"
            for name, rule in self._rules.items()
            if name not in declared and self._plan.unknown_channels(rule)
        }

    def _warn(self, said: set[str]) -> None:
        """Log each warning once, until it no longer holds."""
        for warning in sorted(said - self._warned):
            log.warning("%s", warning)
        self._warned = said

    def _forget_silences(self, now: int) -> None:
        edits = [
            EntryEdit(kind=SILENCE_KIND, name=entry.name, expect_version=entry.version, data=None)
            for entry in all_entries(self._store, SILENCE_KIND)
            if (found := unpack_silence(entry.data)) is None or now - found.until > SILENCE_KEPT_FOR
        ]
        self._store.edit_entries(edits[:BATCH])
