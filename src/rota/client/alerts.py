"""Defines app.alerts, which declares and stores alert rules, declares channels and heartbeat URLs, lists alerts,
silences them and tests channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, Unpack

from rota.alerts.plan import AlertDeclarations, AlertPlan
from rota.alerts.reading import read_incidents, read_silences
from rota.alerts.sender import Sender
from rota.alerts.stored_rules import StoredRules, read_stored_rules
from rota.errors import AlertNotFound, BadOption, Refused, VersionConflict
from rota.inspector.facts.alert import (
    AlertFacts,
    AlertRuleFacts,
    AlertRulesFacts,
    SilenceFacts,
    alert_facts,
    alert_state,
    channel_facts,
    rule_facts,
    silence_facts,
)
from rota.keywords import known_keywords_of_verbs
from rota.model.alerts.channel import make_email, make_heartbeat, make_python, make_webhook
from rota.model.alerts.decide import ended_with_rule
from rota.model.alerts.incident import (
    KIND,
    SILENCE_KIND,
    WATCH_KIND,
    Silence,
    pack,
    unpack_incident,
    unpack_silence,
    unpack_watch,
)
from rota.model.alerts.message import sample_alert
from rota.model.alerts.rule import make_rule
from rota.model.alerts.stored_rule import StoredRule, replaced, where_declared
from rota.model.audit_record import Author, audit_record_of, subject_of
from rota.model.entry import EntryEdit
from rota.model.micros import check_instant, optional_datetime
from rota.operations.audit import whoami
from rota.store.contract import Page, check_limit
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from rota.config.loader import Resolved
    from rota.engine.node import Node
    from rota.model.alerts.incident import Incident
    from rota.model.alerts.message import Alert
    from rota.model.alerts.rule import AlertKeywords, AlertRule
    from rota.store.contract import Store

Handler = TypeVar("Handler", bound="Callable[[Alert], object]")

STATES = ("pending", "open", "unchecked", "ended")
_RANK = {"open": 0, "unchecked": 1, "pending": 2, "ended": 3}
TRIES = 5  # times that a silence is written if others change it, too
LONGEST_REASON = 1_000  # characters


class Owner(Protocol):
    """The part of the app that these verbs need."""

    name: str
    node: Node | None  # the one that runs in this process
    has_code: bool

    def open(self) -> Store: ...

    @property
    def resolved(self) -> Resolved: ...

    def new_id(self) -> str: ...


@known_keywords_of_verbs("app.alerts")
class Alerts:
    """app.alerts"""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.declared = AlertDeclarations()

    # Declaring, before the app starts.

    def add(self, name: str, *, when: str, **options: Unpack[AlertKeywords]) -> None:
        """Declare a rule: `app.alerts.add("backup", when="no_success", schedule="backup", after="26h")`.

        It is about all schedules, queues or nodes, unless one is named, or a prefix that ends in *.
        """
        self._check_not_running()
        self.declared.add_rule(make_rule(name, when=when, **options))

    def webhook(self, name: str, url: str, *, secret: str | None = None) -> None:
        """Declare a channel that gets each message as JSON, signed with the secret. `env:NAME` names a variable."""
        self._check_not_running()
        self.declared.add_channel(make_webhook(name, url, secret=secret))

    def email(self, name: str, to: str | Iterable[str]) -> None:
        """Declare a channel that sends each message by e-mail, through the server of the settings `smtp`."""
        self._check_not_running()
        self.declared.add_channel(make_email(name, to))

    def channel(self, name: str) -> Callable[[Handler], Handler]:
        """Declare a function as a channel: `@app.alerts.channel("pager")`. It gets an Alert and may be
        `async`. If it raises, it is called again later."""

        def declare(handler: Handler) -> Handler:
            self._check_not_running()
            self.declared.add_channel(make_python(name, handler))
            return handler

        return declare

    def heartbeat(self, schedule: str, url: str, *, start: bool = False) -> None:
        """Call a URL when a run of a schedule succeeds, with /fail after it when one fails, and with /start, if that
        is requested, when one begins."""
        self._check_not_running()
        self.declared.add_heartbeat(make_heartbeat(schedule, url, start=start))

    # Reading.

    @property
    def plan(self) -> AlertPlan:
        """All declarations of code and rota.yaml."""
        resolved = self._owner.resolved
        return AlertPlan(self.declared, resolved.declared, resolved.settings)

    def rule(self, name: str) -> AlertRuleFacts:
        """One rule, declared or stored; AlertNotFound if there is none."""
        found = next((one for one in self.rules().rules if one.name == name), None)
        if found is None:
            raise AlertNotFound(f"there is no alert rule {name!r}; `rota alerts rules` shows the rules")
        return found

    def rules(self) -> AlertRulesFacts:
        """The rules and channels that this app declares, the rules that the store keeps, those of other apps included,
        the silences, and when a node last checked the rules of this app."""
        store, plan = self._owner.open(), self.plan
        now, silences = store.now(), read_silences(store)
        found = store.get_entries(WATCH_KIND, [self._owner.name])
        watch = unpack_watch(found[0].data) if found else None
        return AlertRulesFacts(
            rules=sorted(self._rule_facts(store, plan, silences, now), key=lambda one: one.name),
            channels=[channel_facts(one, plan.problems(one)) for _, one in sorted(plan.channels.items())],
            silences=[silence_facts(one, now) for _, one in sorted(silences.items())],
            checked_at=optional_datetime(None if watch is None else watch.at),
            checked_by=None if watch is None else watch.by,
        )

    def list(self, *, state: str | None = None, limit: int = 50, cursor: str | None = None) -> Page[AlertFacts]:
        """Alerts of all apps: open ones first, then the newest first."""
        if state is not None and state not in STATES:
            raise BadOption(f"state={state!r} must be one of {', '.join(STATES)}")
        store = self._owner.open()
        now, silences = store.now(), read_silences(store)
        incidents = [one for one, _ in read_incidents(store).values() if state in {None, alert_state(one, now)}]
        ordered = sorted(incidents, key=lambda one: _position(one, now))
        after = [one for one in ordered if cursor is None or _cursor(one, now) > cursor]
        page = page_of(after, check_limit(limit), lambda one: _cursor(one, now))
        return Page([alert_facts(one, silences, now) for one in page.items], page.cursor)

    def get(self, alert_id: str) -> AlertFacts:
        """One alert; AlertNotFound if there is none."""
        store = self._owner.open()
        return alert_facts(self._incident(store, alert_id), read_silences(store), store.now())

    def _rule_facts(
        self, store: Store, plan: AlertPlan, silences: dict[str, Silence], now: int
    ) -> Iterator[AlertRuleFacts]:
        app, kept = self._owner.name, read_stored_rules(store)
        twice = replaced(app, plan.rules, kept)
        for name, rule in plan.rules.items():
            problem = f"a stored rule of this name is not used; `rota alerts remove {name}` removes it"
            yield rule_facts(rule, silences.get(name), now, app=app, problem=problem if name in twice else "")
        for name, one in kept.items():
            if name in plan.rules:
                continue
            problem = plan.unknown_channels(one.rule) if one.app == app and self._owner.has_code else ""
            yield rule_facts(one.rule, silences.get(name), now, app=one.app, version=one.version, problem=problem)

    # Changing.

    def put(
        self,
        name: str,
        *,
        when: str,
        by: str = "",
        expect_version: int | None = None,
        **options: Unpack[AlertKeywords],
    ) -> AlertRuleFacts:
        """Add a rule to the store, or replace it, while nodes run. They check it within a minute.

        The options are those of `add`. Refused if code or rota.yaml declares a rule of that name.
        """
        rule = make_rule(name, when=when, **options)
        self._check_settable(rule)
        store = self._owner.open()
        stored = StoredRule(app=self._owner.name, rule=rule)
        kept = StoredRules(store, self._owner.new_id).put(stored, by or whoami(), expect_version)
        silence = read_silences(store).get(name)
        return rule_facts(rule, silence, store.now(), app=kept.app, version=kept.version)

    def remove(self, name: str, *, by: str = "", expect_version: int | None = None) -> bool:
        """Remove a stored rule and end its alerts, without a message; no error if there is none.

        Refused if only code or rota.yaml has the rule.
        """
        store = self._owner.open()
        rules = StoredRules(store, self._owner.new_id)
        if not rules.has(name):
            self._check_undeclared(name)
            return False
        removed = rules.remove(name, by or whoami(), expect_version)
        is_in_use = removed is not None and (removed.app != self._owner.name or name not in self.plan.rules)
        if removed is not None and is_in_use:
            self._end_alerts(store, removed.app, name)
        return True

    def _check_settable(self, rule: AlertRule) -> None:
        if not self._owner.has_code:
            raise Refused(
                "this process has no app, so it knows neither whose nodes would check the rule nor its channels; "
                "name the app: --app jobs.py, ROTA_APP, or `app:` in rota.yaml"
            )
        self._check_undeclared(rule.name)
        for channel in rule.channels or ():
            self.plan.channel(channel)

    def _check_undeclared(self, name: str) -> None:
        declared = self.plan.rules.get(name)
        if declared is not None:
            raise Refused(f"alert rule {name!r} is declared in {where_declared(declared)}; change it there")

    def _end_alerts(self, store: Store, app: str, rule: str) -> None:
        """End the alerts of a rule. One that a node changes at this instant ends as that of a removed declaration."""
        now = store.now()
        edits = [
            EntryEdit(
                kind=KIND,
                name=name,
                expect_version=version,
                data=None if one.state == "pending" else pack(ended_with_rule(one, now)),
            )
            for name, (one, version) in read_incidents(store).items()
            if (one.app, one.rule) == (app, rule) and one.state != "ended"
        ]
        if edits:
            store.edit_entries(edits)

    def silence(self, target: str, *, until: datetime, reason: str = "", by: str = "") -> SilenceFacts:
        """Send no message about new alerts of a rule, or about one alert, until a time.

        Alerts are still recorded. If one is still open when the silence ends, its message is sent then.
        """
        store = self._owner.open()
        end, now = check_instant("until", until), store.now()
        if end <= now:
            raise BadOption(f"until={until.isoformat()} lies in the past")
        if len(reason) > LONGEST_REASON:
            raise BadOption(f"reason= has {len(reason):,} characters; at most {LONGEST_REASON:,} are kept")
        self._check_target(store, target)
        author = by or whoami()
        silence = Silence(target=target, until=end, by=author, reason=reason, at=now)
        self._put_silence(store, target, silence, author)
        return silence_facts(silence, now)

    def unsilence(self, target: str, *, by: str = "") -> bool:
        """End a silence; False if there is none."""
        store = self._owner.open()
        return self._put_silence(store, target, None, by or whoami())

    def test(self, channel: str, *, by: str = "") -> None:
        """Send a test message to a channel, from this process; AlertNotSent if the channel does not accept it."""
        plan = self.plan
        alert = sample_alert(self._owner.name, channel, self._owner.open().now(), by or whoami())
        Sender(plan).send(plan.channel(channel), alert)

    def _put_silence(self, store: Store, target: str, silence: Silence | None, by: str) -> bool:
        for _ in range(TRIES):
            found = store.get_entries(SILENCE_KIND, [target])
            if not found and silence is None:
                return False
            before = unpack_silence(found[0].data) if found else None
            verb = "unsilenced" if silence is None else "silenced"
            author = Author(record_id=self._owner.new_id(), by=by, verb=verb)
            edit = EntryEdit(
                kind=SILENCE_KIND,
                name=target,
                expect_version=found[0].version if found else 0,
                data=None if silence is None else pack(silence),
                audit=audit_record_of(
                    author, subject_of(KIND, target), _audited(before), _audited(silence), store.now()
                ),
            )
            if not store.edit_entries([edit]):
                return True
        raise VersionConflict(f"others change the silence of {target} all the time; try again")

    def _check_target(self, store: Store, target: str) -> None:
        if target in self.plan.rules or StoredRules(store, self._owner.new_id).has(target):
            return
        known = read_incidents(store)
        if target not in known and not any(one.rule == target for one, _ in known.values()):
            rules = ", ".join(sorted(self.plan.rules)) or "none"
            raise AlertNotFound(
                f"there is no alert rule and no alert {target!r}; the rules of this app: {rules}; "
                "`rota alerts list` shows the alerts"
            )

    def _incident(self, store: Store, alert_id: str) -> Incident:
        found = store.get_entries(KIND, [alert_id])
        incident = unpack_incident(found[0].data) if found else None
        if incident is None:
            raise AlertNotFound(f"no alert has the id {alert_id!r}; `rota alerts list` shows them")
        return incident

    def _check_not_running(self) -> None:
        if self._owner.node is not None:
            raise Refused("declare alerts before the app starts: its node reads them once")


def _position(incident: Incident, now: int) -> tuple[int, int, str]:
    return _RANK[alert_state(incident, now)], -incident.since, incident.id


def _cursor(incident: Incident, now: int) -> str:
    """Text that sorts as the positions do. For newest first, the highest number of microseconds comes first."""
    rank, since, name = _position(incident, now)
    return f"{rank}-{10**17 + since:018d}-{name}"


def _audited(silence: Silence | None) -> dict[str, object]:
    return {} if silence is None else {"until": silence.until, "reason": silence.reason}
