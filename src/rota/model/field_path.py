"""Checks the dotted path of a field in a document: "sleepUntil" or "job.sleepUntil"."""

from __future__ import annotations

from rota.errors import BadOption, PathThroughList


def check_path(path: object) -> str:
    """The path, if it names one value of a document."""
    if not isinstance(path, str) or not path or any(not part for part in path.split(".")):
        raise BadOption(f"{path!r} is not a path of a field; write a name such as 'sleepUntil' or 'job.sleepUntil'")
    if any(part.startswith("$") or "\0" in part for part in path.split(".")):
        raise BadOption(f"{path!r} is not a path of a field: no part of it may begin with '$' or hold a null byte")
    if any(part.isdigit() for part in path.split(".")):
        raise PathThroughList(
            f"the path {path!r} leads through a list; a lock needs one value per document. "
            "Make each element a document of its own, or name a field outside of the list"
        )
    return path
