"""Makes ids of schedules from the names and commands of other systems. The same text gives the same id."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

LONGEST = 60
_REDIRECTION = re.compile(r"\d?[<>|;&]")
_OTHER = re.compile(r"[^A-Za-z0-9_]+")


def id_of(name: str, prefix: str = "") -> str:
    """A name as an id: `proj.tasks.add` becomes `proj-tasks-add`, and `Größe` becomes `Grosse`."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    words = _OTHER.sub("-", "".join(one for one in plain if not unicodedata.combining(one))).strip("-") or "schedule"
    return f"{prefix}{words[:LONGEST].strip('-')}"


def id_of_command(command: str, prefix: str = "") -> str:
    """A command as an id: its program without the folder, and its arguments up to a pipe or a redirection."""
    words = _REDIRECTION.split(command, maxsplit=1)[0].split() or command.split()
    first = PurePosixPath(words[0]).name if words else ""
    return id_of(" ".join([first, *words[1:]]), prefix)
