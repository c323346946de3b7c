"""Reads and writes alert rules that are set at run time: one entry per rule, with the app that checks it.

Names are unique in the store, not in an app: a silence, an address and an audit record then mean one rule.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from rota.model.alerts.rule import AlertRule
from rota.model.micros import span_text

RULE_KIND = "alert_rule"  # of its entry


class StoredRule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule, and the app whose nodes check it."""

    app: str
    rule: AlertRule


class KeptRule(Struct, frozen=True, kw_only=True):
    """A rule with the version of its entry."""

    app: str
    rule: AlertRule
    version: int


_decoder = msgspec.json.Decoder(StoredRule)


def pack_rule(app: str, rule: AlertRule) -> str:
    return msgspec.json.encode(StoredRule(app=app, rule=rule)).decode()


def unpack_rule(data: str) -> StoredRule | None:
    """The rule of an entry; None if it cannot be read, because another version or a person wrote it."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError:
        return None


def audited_rule(stored: StoredRule | None) -> dict[str, Any]:
    """The facts of a rule that an audit record keeps."""
    if stored is None:
        return {}
    rule = stored.rule
    return {
        "app": stored.app,
        "when": rule.when,
        rule.kind: rule.selects,
        "after": span_text(rule.after) if rule.after else None,
        "more_than": rule.more_than or None,
        "channels": None if rule.channels is None else list(rule.channels),
    }


def rules_in_force(app: str, declared: dict[str, AlertRule], kept: dict[str, KeptRule]) -> dict[str, AlertRule]:
    """The rules that the nodes of an app check. A declared rule replaces a stored one of the same name."""
    return {name: one.rule for name, one in kept.items() if one.app == app} | declared


def replaced(app: str, declared: dict[str, AlertRule], kept: dict[str, KeptRule]) -> set[str]:
    """Names of stored rules that are not used, because the app declares them, too."""
    return {name for name, one in kept.items() if one.app == app and name in declared}


def where_declared(rule: AlertRule) -> str:
    return rule.place or "code"
