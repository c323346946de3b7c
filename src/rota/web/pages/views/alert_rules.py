"""Shows the form of a stored alert rule, saves a new or changed one, and removes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.errors import AlertNotFound, BadName, BadOption, BadTrigger, Refused, VersionConflict
from rota.model.alerts.rule import KIND_OF, MOST_LENGTH, NEEDS_AFTER, WHENS, check_pattern
from rota.model.micros import span_of
from rota.model.names import check_name
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.said_words import say_error
from rota.web.types import Name

if TYPE_CHECKING:
    from rota.inspector.facts.alert import AlertRuleFacts

TEXTS = ("name", "when", "selects", "after", "more_than")
LONGEST = 200  # characters of a field that are kept
LONGEST_NUMBER = 10  # digits


class RulePath(Struct, frozen=True):
    """Which alert rule."""

    rule: Name


def show_new_rule(visit: Visit) -> View:
    return _view(visit, None, {"when": "fails"}, [], {})


def add_rule(visit: Visit) -> View | GoTo:
    return _save(visit, None)


def show_rule(visit: Visit) -> View:
    rule = _stored(visit)
    sent = {
        "name": rule.name,
        "when": rule.when,
        "selects": "" if rule.selects == "*" else rule.selects,
        "after": rule.after or "",
        "more_than": "" if rule.more_than is None else str(rule.more_than),
    }
    return _view(visit, rule, sent, rule.channels or [], {})


def change_rule(visit: Visit) -> View | GoTo:
    return _save(visit, _stored(visit))


def remove_rule(visit: Visit) -> GoTo:
    name = visit.path["rule"]
    if not visit.app.alerts.remove(name, by=visit.by):
        raise AlertNotFound(f"there is no alert rule {name!r}; another person may have removed it")
    return GoTo(path="/alerts", flash=Flash(key="alerts.removed", values={"name": name}))


def _stored(visit: Visit) -> AlertRuleFacts:
    rule = visit.app.alerts.rule(visit.path["rule"])
    if rule.version is None:
        raise Refused(f"alert rule {rule.name!r} is declared in {rule.place or rule.origin}; change it there")
    return rule


def _save(visit: Visit, before: AlertRuleFacts | None) -> View | GoTo:
    sent = {name: visit.form.get(name).strip()[:LONGEST] for name in TEXTS}
    if before is not None:
        sent["name"] = before.name
    channels = visit.form.all("channel")
    faults: dict[str, str] = {}
    fields = _fields(visit, sent, faults)
    if faults:
        return _view(visit, before, sent, channels, faults)
    version = visit.form.get("version")
    expected = int(version) if version.isascii() and version.isdigit() and len(version) < 19 else 0
    try:
        visit.app.alerts.put(
            sent["name"], **fields, channels=channels or None, by=visit.by, expect_version=expected if before else 0
        )
    except VersionConflict as err:
        field = "conflict" if before else "name"
        return _view(visit, before, sent, channels, {field: say_error(visit.words, err)})
    except AlertNotFound as err:
        return _view(visit, before, sent, channels, {"channels": say_error(visit.words, err)})
    except (BadOption, Refused) as err:
        return _view(
            visit, before, sent, channels, {"name" if isinstance(err, Refused) else "form": say_error(visit.words, err)}
        )
    key = "alerts.changed" if before else "alerts.added"
    return GoTo(path="/alerts", flash=Flash(key=key, values={"name": sent["name"]}))


def _fields(visit: Visit, sent: dict[str, str], faults: dict[str, str]) -> dict[str, Any]:
    """The options of the rule; what is wrong is said at its field."""
    when = sent["when"] if sent["when"] in WHENS else WHENS[0]
    kind = KIND_OF[when]
    read: dict[str, Any] = {}
    for name in ("name", "selects", "after", "more_than"):
        text = sent[name]
        if said := _misfit(visit, name, when, text):
            faults[name] = said
            continue
        try:
            read[name] = _value(name, kind, text)
        except (BadName, BadOption, BadTrigger) as err:
            faults[name] = say_error(visit.words, err)
    return {"when": when, kind: read.get("selects"), "after": read.get("after"), "more_than": read.get("more_than")}


def _misfit(visit: Visit, name: str, when: str, text: str) -> str:
    """Why a field does not go with the condition; empty if it does."""
    words = visit.words
    if (name == "after" and when == "fails" and text) or (name == "more_than" and when != "length" and text):
        return words.text("alerts.does_not_fit", field=words.text(f"alerts.f_{name}"))
    if name == "after" and when in NEEDS_AFTER and not text:
        return words.text("alerts.after_missing")
    if name != "more_than" or when != "length":
        return ""
    if not text:
        return words.text("alerts.more_than_missing")
    is_number = text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER and int(text) <= MOST_LENGTH
    return "" if is_number else words.text("alerts.more_than_bad", text=text)


def _value(name: str, kind: str, text: str) -> str | int | None:
    if name == "name":
        return check_name("alert", text)
    if not text:
        return None
    if name == "selects":
        return check_pattern(kind, text)
    if name == "more_than":
        return int(text)
    span_of(text)
    return text


def _view(
    visit: Visit, rule: AlertRuleFacts | None, sent: dict[str, str], ticked: list[str], faults: dict[str, str]
) -> View:
    known = [one.name for one in visit.app.alerts.rules().channels]
    values = {
        "rule": rule,
        "form": {name: sent.get(name, "") for name in TEXTS},
        "ticked": ticked,
        "channels": [*known, *(name for name in dict.fromkeys(ticked) if name not in known)],
        "known": known,
        "whens": [(when, KIND_OF[when]) for when in WHENS],
        "faults": faults,
    }
    status = 409 if "conflict" in faults else 422 if faults else 200
    return View(template="alert_rule.html", values=values, status=status)


_ONE = "/alerts/rules/{rule}"

PAGES = (
    Page(path="/alerts/new", role="operate", handle=show_new_rule),
    Page(method="POST", path="/alerts/new", role="operate", handle=add_rule),
    Page(path=_ONE, role="operate", params=RulePath, handle=show_rule),
    Page(method="POST", path=_ONE, role="operate", params=RulePath, handle=change_rule),
    Page(method="POST", path=f"{_ONE}/remove", role="operate", params=RulePath, handle=remove_rule),
)
