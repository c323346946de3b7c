"""Collects the alert declarations of an app, from code and rota.yaml, and checks them against each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rota.errors import AlertNotFound, BadOption, BadSettings, DuplicateName
from rota.model.alerts.channel import check_url
from rota.model.alerts.url import variable_value

if TYPE_CHECKING:
    from rota.config.declared import Declarations
    from rota.config.settings import Settings
    from rota.model.alerts.channel import Channel, HeartbeatUrl
    from rota.model.alerts.rule import AlertRule


class AlertDeclarations:
    """The declarations of the code."""

    def __init__(self) -> None:
        self.rules: dict[str, AlertRule] = {}
        self.channels: dict[str, Channel] = {}
        self.heartbeats: dict[str, HeartbeatUrl] = {}
        self.has_heartbeat_handlers = False  # the app's events call the heartbeat URLs already

    def add_rule(self, rule: AlertRule) -> None:
        if rule.name in self.rules:
            raise DuplicateName(f"an alert rule named {rule.name!r} is declared already; give one another name")
        self.rules[rule.name] = rule

    def add_channel(self, channel: Channel) -> None:
        if channel.name in self.channels:
            raise DuplicateName(f"a channel named {channel.name!r} is declared already; give one another name")
        self.channels[channel.name] = channel

    def add_heartbeat(self, heartbeat: HeartbeatUrl) -> None:
        if heartbeat.schedule in self.heartbeats:
            raise DuplicateName(f"schedule {heartbeat.schedule!r} has a heartbeat URL already")
        self.heartbeats[heartbeat.schedule] = heartbeat


class AlertPlan:
    """The rules, channels and heartbeat URLs of an app. Code and file may not declare the same name."""

    def __init__(self, code: AlertDeclarations, file: Declarations, settings: Settings) -> None:
        self.settings = settings
        self.rules = {**code.rules, **{rule.name: rule for rule in file.alerts}}
        self.channels = {**code.channels, **{channel.name: channel for channel in file.channels}}
        self.heartbeats = {**code.heartbeats, **{one.schedule: one for one in file.heartbeats}}
        self._twice = [
            f"{place}: {path} is declared in code, too; keep one of them"
            for place, path, is_twice in (
                *((one.place, f"alerts.{one.name}", one.name in code.rules) for one in file.alerts),
                *((one.place, f"channels.{one.name}", one.name in code.channels) for one in file.channels),
                *(
                    (one.place, f"heartbeats.{one.schedule}", one.schedule in code.heartbeats)
                    for one in file.heartbeats
                ),
            )
            if is_twice
        ]

    @property
    def is_empty(self) -> bool:
        return not (self.rules or self.heartbeats or self.settings.alerting.node_heartbeat)

    def channel(self, name: str) -> Channel:
        found = self.channels.get(name)
        if found is None:
            known = ", ".join(sorted(self.channels)) or "none"
            raise AlertNotFound(f"there is no channel named {name!r}; the app has: {known}")
        return found

    def check(self) -> None:
        """Refuse declarations that a node could not carry out later, before it starts; one error names them all."""
        complaints = [*self.mistakes(), *self.missing()]
        if complaints:
            raise BadSettings(*complaints)

    def mistakes(self) -> list[str]:
        """The mistakes that do not depend on where the app runs."""
        return [*self._twice, *self._unknown_channels()]

    def missing(self) -> list[str]:
        """The problems with the settings and variables of this process."""
        node = self.settings.alerting.node_heartbeat
        said = [
            *((one.place, f"channels.{one.name}", self.problems(one)) for one in self.channels.values()),
            *((one.place, f"heartbeats.{one.schedule}", _url_problems(one.url)) for one in self.heartbeats.values()),
            ("", "alerting.node_heartbeat", [] if node is None else _url_problems(node)),
        ]
        return [f"{_where(place, path)}: {why}" for place, path, found in said for why in found]

    def problems(self, channel: Channel) -> list[str]:
        """Why a channel cannot be used as it is declared."""
        if channel.kind == "email":
            missing = [name for name in ("host", "sender") if getattr(self.settings.smtp, name) is None]
            return [f"e-mail needs smtp.{name}; set it in rota.yaml or by ROTA_SMTP_{name.upper()}" for name in missing]
        if channel.kind != "webhook":
            return []
        return [*_url_problems(channel.url), *self._secret_problems(channel)]

    def url(self, text: str) -> str:
        return variable_value(text, os.environ)

    def secret(self, channel: Channel) -> str:
        return variable_value(channel.secret or self.settings.alerting.secret or "", os.environ)

    def _secret_problems(self, channel: Channel) -> list[str]:
        try:
            has_secret = bool(self.secret(channel))
        except BadOption as err:
            return [str(err)]
        return [] if has_secret else ["a webhook needs a secret that signs its requests; set ROTA_ALERTING_SECRET"]

    def unknown_channels(self, rule: AlertRule) -> str:
        """The channels of a rule that are not declared, in words; empty if all are."""
        known = ", ".join(sorted(self.channels)) or "none"
        missing = [name for name in rule.channels or () if name not in self.channels]
        return "; ".join(f"there is no channel {name!r}; there are: {known}" for name in missing)

    def _unknown_channels(self) -> list[str]:
        found = ((rule, self.unknown_channels(rule)) for rule in self.rules.values())
        return [f"{_where(rule.place, f'alerts.{rule.name}.channels')}: {said}" for rule, said in found if said]


def _url_problems(url: str) -> list[str]:
    try:
        check_url(variable_value(url, os.environ))
    except BadOption as err:
        return [str(err)]
    return []


def _where(place: str, path: str) -> str:
    return f"{place}: {path}" if place else path
