"""Checks the origin of a schedule: whether another origin may change it, and how errors name both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import Refused
from rota.sentences import Sentence, sentence

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Origin, Schedule


def check_origin(schedule: Schedule, origin: Origin, verb: str, todo: str) -> None:
    """Refuse to change or remove a schedule of another origin: the next deploy of that origin would bring it back."""
    if not is_kin(schedule.origin, origin):
        raise belongs_elsewhere(schedule, origin, verb, todo)


def belongs_elsewhere(schedule: Schedule, origin: Origin, verb: str, todo: str) -> Refused:
    return Refused(
        sentence(
            "refused.elsewhere",
            "schedule '{schedule}' is defined by {origin}, so {who} {verb} it; {todo}",
            schedule=schedule.id,
            origin=origin_sentence(schedule.origin),
            who=_who(origin),
            verb=verb,
            todo=todo,
        )
    )


def _who(origin: Origin) -> str:
    """The subject of an error. A caller that edits by hand is addressed as "you"; a deploy or an import by its name."""
    return "you cannot" if origin.kind == "api" else f"{describe_origin(origin)} cannot"


def is_kin(defined_by: Origin, origin: Origin) -> bool:
    """Whether both belong to one deploy: an app's code and its file do. An imported one is its next editor's."""
    if defined_by.kind == "import" != origin.kind:
        return True
    kinds = {defined_by.kind, origin.kind}
    return defined_by.app == origin.app and (len(kinds) == 1 or kinds == {"code", "file"})


def may_hand_over(defined_by: Origin, origin: Origin) -> bool:
    """Whether a schedule may move from an app's code to its file, or back: in one version, one of them has it. An
    imported one moves to its first editor, so that no later import undoes the edit."""
    if defined_by.kind == "import":
        return True
    return defined_by.is_retired or is_older(defined_by.version, origin.version)


def describe_origin(origin: Origin) -> str:
    return str(origin_sentence(origin))


def origin_sentence(origin: Origin) -> Sentence:
    """The origin of a schedule, in words."""
    app = sentence("origin.of_app", " of app '{app}'", app=origin.app) if origin.app else ""
    match origin.kind:
        case "import":
            return sentence("origin.import", "an import from {app}", app=origin.app)
        case "code":
            return sentence("origin.code", "the code{app}", app=app)
        case "file":
            return sentence("origin.file", "a file{app}", app=app)
        case _:
            return sentence("origin.api", "the API{app}", app=app)


def is_older(version: str, than: str) -> bool:
    """Whether dotted numbers say so; anything else has no order."""
    try:
        return [int(part) for part in version.split(".")] < [int(part) for part in than.split(".")]
    except ValueError:
        return False
