"""Logs people in with a token or a link that works once, and out. Sets what a browser keeps: theme and language."""

from __future__ import annotations

from rota.app import internals
from rota.model.jobs.payload import REDACTED
from rota.web.pages.page import GoTo, Page, View, Visit
from rota.web.pages.run_form import PREFIX, fields_of, shows_plainly
from rota.web.pages.schedule_form import DEFAULTS
from rota.web.pages.texts import languages

KEPT = "kept."
BASE = "base."
OF_PAGE = frozenset({"back", "save", "preview", "sure", "asked", "until", "scope"})  # no field that is typed into
THEMES = ("", "light", "dark")
LONGEST_TOKEN = 200


def show_login(visit: Visit) -> View | GoTo:
    back = own_path(visit.query.get("back", "/"))
    if visit.is_person or (visit.session and not visit.query.get("once")):
        return GoTo(path=back)
    return _login(back=back, once=visit.query.get("once", "")[:LONGEST_TOKEN])


def log_in(visit: Visit) -> View | GoTo:
    """A session for a good token or link; then back to where the visitor was, with what they had typed."""
    form = visit.form
    back = own_path(form.get("back", "/"))
    is_form = "resume" in form
    if "once" in form:
        session, problem = visit.access.sessions.use_link(form.get("once")), "login.link_used"
    else:
        session, problem = visit.access.sessions.begin(visit.bearer) if visit.bearer else None, "login.bad"
    if session is None:
        return _login(back=back, problem=problem, kept=_kept(visit), is_form=is_form, status=401)
    return _resume(visit, back, session) if is_form else GoTo(path=back, session=session)


def log_out(visit: Visit) -> GoTo:
    if visit.session:
        visit.access.sessions.end(visit.session)
    return GoTo(path="/login", session="")


def choose_look(visit: Visit) -> GoTo:
    """The theme or the language, which the browser keeps."""
    chosen = {}
    if visit.form.get("theme") in THEMES and "theme" in visit.form:
        chosen["rota_theme"] = visit.form.get("theme")
    if visit.form.get("language") in languages():
        chosen["rota_language"] = visit.form.get("language")
    return GoTo(path=own_path(visit.form.get("back", "/")), cookies=chosen)


def own_path(text: str) -> str:
    """A path of this dashboard; anything else, such as another site's address, is the first page."""
    is_own = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and len(text) < 2_000
    return text if is_own else "/"


def _resume(visit: Visit, action: str, session: str) -> View:
    """What was typed is offered again: nothing is done that the visitor does not ask for once more."""
    fields = _kept(visit)
    back = own_path(next((value for name, value in fields if name == "back"), "/"))
    shown = [
        (name.removeprefix(PREFIX), value if _is_plain(visit, action, name) else REDACTED)
        for name, value in said_fields(action, fields)
    ]
    values = {"action": action, "fields": fields, "shown": shown, "back": back}
    return View(template="resume.html", values=values, session=session)


def said_fields(action: str, fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What the visitor changed or typed: not what is as it was before, or is empty, or is the page's own.

    An editor sends each field with its value before as `base.NAME`. A field that was emptied is a change.
    """
    before = dict(DEFAULTS) if action == "/schedules/new" else {}
    before |= {name.removeprefix(BASE): value.strip() for name, value in fields if name.startswith(BASE)}
    said = [(name, value.strip()) for name, value in fields if not name.startswith(BASE) and name not in OF_PAGE]
    return [(name, value) for name, value in said if value != before.get(name, "")]


def _is_plain(visit: Visit, action: str, name: str) -> bool:
    """Whether what was typed into a field may be shown: an argument may be a secret, or hold one."""
    if not name.startswith(PREFIX):
        return name.rpartition(".")[2] not in {"args", "kwargs"}
    inner, task = internals(visit.app), action.removeprefix("/catalog/")
    if task not in inner.registry.names():
        return False
    fields = fields_of(inner.registry.get(task), inner.redaction.extra)
    return any(shows_plainly(field) for field in fields if field.key == name)


def _kept(visit: Visit) -> list[tuple[str, str]]:
    return [(name.removeprefix(KEPT), value) for name, value in visit.form if name.startswith(KEPT)]


def _login(
    *,
    back: str,
    once: str = "",
    problem: str = "",
    kept: list[tuple[str, str]] | None = None,
    is_form: bool = False,
    status: int = 200,
) -> View:
    values = {"back": back, "once": once, "problem": problem, "kept": kept or [], "is_form": is_form}
    return View(template="login.html", values=values, status=status)


PAGES = (
    Page(path="/login", role=None, handle=show_login),
    Page(method="POST", path="/login", role=None, handle=log_in, changes_nothing=True, reads_token=True),
    Page(method="POST", path="/logout", role=None, handle=log_out, changes_nothing=True),
    Page(method="POST", path="/look", role=None, handle=choose_look, changes_nothing=True),
)
