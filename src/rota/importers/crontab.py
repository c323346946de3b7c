"""Reads crontab files, of users and of the system, and turns their lines into schedules.

A line keeps what cron does: runs may overlap, and a missed run is not made up for.
"""

from __future__ import annotations

import keyword
import pwd
import re
import shutil
from typing import TYPE_CHECKING, Any

from rota.errors import BadOption, RotaError
from rota.importers.cron_rules import runs_of_cron
from rota.importers.found import Found, Item, UnsupportedItem, Wanted, distinct
from rota.importers.naming import id_of, id_of_command
from rota.triggers import cron

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.importers.found import Tasks

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
OF_CRON = {"CRON_TZ", "MAILTO", "MAILFROM", "SHELL"}  # settings that cron itself reads
MOST_SETTINGS = 1_000  # each line keeps those above it
USED = {"App", "app", "os", "print", "run", "subprocess"}  # names that the code below has of its own
CODE = '''"""The commands of a crontab, one task each."""

# Imported from {source!r}

import os
import subprocess

from rota import App

app = App()


def run(command, *, env=None, stdin="", shell="/bin/sh"):
    """Run a command as cron does. Its output is the job's log; an exit code other than 0 fails the job."""
    done = subprocess.run(
        [shell, "-c", command],
        env={{**os.environ, **(env or {{}})}},
        input=stdin,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    print(done.stdout, end="")
    done.check_returncode()
'''
FIRST_LINE = CODE.partition("\n")[0]  # says that an import wrote a file
_SETTING = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([^\s=]+))\s*=\s*(.*?)\s*$""")
_PERCENT = re.compile(r"(\\%|%)")
BLANKS = " \t"


class CrontabLine(Found, frozen=True, kw_only=True):
    """One line, with the settings that stand above it."""

    when: str  # five fields or a macro
    command: str  # what the shell gets; empty: the line cannot be read
    stdin: str | None = None  # what stands behind the first unescaped %
    user: str = ""
    env: dict[str, str] = {}  # noqa: RUF012 - msgspec copies the defaults of its structs


def read_crontab(text: str, *, is_system: bool = False) -> list[CrontabLine]:
    """The lines that run something; settings hold from their line on."""
    settings: dict[str, str] = {}
    env: dict[str, str] | None = None  # a copy for the lines up to the next setting
    found = []
    for number, raw in enumerate(text.split("\n"), start=1):  # as cron does: other line breaks belong to a command
        line = raw.removesuffix("\r").lstrip(BLANKS)
        if not line.strip(BLANKS) or line.startswith("#"):
            continue
        setting = None if _begins_with_time(line) else _SETTING.match(line)
        if setting:
            settings[next(name for name in setting.groups()[:3] if name)] = _unquoted(setting.group(4))
            env = None
            if len(settings) > MOST_SETTINGS:
                raise BadOption(f"the crontab has more than {MOST_SETTINGS:,} settings; split it into several files")
        else:
            env = dict(settings) if env is None else env
            found.append(_line(number, line, env, is_system=is_system))
    return found


def _begins_with_time(line: str) -> bool:
    """Whether it begins as a rule does; a setting begins with a name."""
    return bool(re.match(r"[-\d*@]", line)) and not re.match(r"\w+\s*=", line)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _line(number: int, line: str, env: dict[str, str], *, is_system: bool) -> CrontabLine:
    fields = 1 if line.startswith("@") else 5
    ruled = line.removeprefix("-").lstrip(BLANKS)  # a leading - keeps cronie from logging the run
    words = re.split(r"[ \t]+", ruled, maxsplit=fields + is_system)
    wanted = fields + is_system + 1
    is_whole = len(words) == wanted
    command, stdin = _split_percent(words[-1]) if is_whole else ("", None)
    return CrontabLine(
        name=f"line {number}",
        old_text=line,
        when=" ".join(words[:fields]),
        user=words[fields] if is_system and is_whole else "",
        command=command,
        stdin=stdin,
        env=env,
    )


def _split_percent(text: str) -> tuple[str, str | None]:
    r"""The command, and its input: behind the first %, where each further % is a new line; \% is a plain one."""
    parts = [""]
    for piece in _PERCENT.split(text):
        if piece == "%":
            parts.append("")
        else:
            parts[-1] += "%" if piece == r"\%" else piece
    return parts[0], "\n".join(parts[1:]) if len(parts) > 1 else None


def zone_of(line: CrontabLine, tz: str) -> str:
    """The zone of its times: CRON_TZ above it, else that of the machine."""
    return line.env.get("CRON_TZ") or tz


def translate_line(line: CrontabLine, tz: str, task: str, *, has_code: bool) -> Wanted:
    """The schedule of one line, whose task either is code of its own or gets the command as its argument."""
    if line.when.lower() == "@reboot":
        raise UnsupportedItem("@reboot names no time; run the command when the service starts, such as with systemd")
    if not line.command:
        raise UnsupportedItem("the line has too few fields; expected five fields or a macro, then a command")
    if "\0" in line.old_text:
        raise UnsupportedItem("the line has a NUL byte, which no command can have")
    try:
        trigger = cron(MACROS.get(line.when.lower(), line.when))
    except RotaError as err:
        raise UnsupportedItem(str(err)) from err
    return Wanted(
        task=task,
        trigger=trigger,
        args=[] if has_code else [line.command],
        kwargs={} if has_code else _surroundings(line),
        options={"tz": zone_of(line, tz), "overlap": "allow", "catchup": "skip"},
        warnings=tuple(_warnings(line, tz)),
    )


def _surroundings(line: CrontabLine) -> dict[str, Any]:
    """What a command gets beside its text, by the names of the arguments of `run` in the code that is written."""
    rest = {name: value for name, value in line.env.items() if name not in OF_CRON}
    said = {"env": rest or None, "stdin": line.stdin, "shell": line.env.get("SHELL")}
    return {name: value for name, value in said.items() if value is not None}


def _warnings(line: CrontabLine, tz: str) -> Iterator[str]:
    first = line.command.split(maxsplit=1)[0] if line.command.strip() else ""
    if not line.user and " " in line.command and _is_user(first):
        yield f"the command begins with {first!r}, a user of this machine; --system reads the user column"
    if line.user:
        yield f"cron ran it as user {line.user!r}; a worker of Rota runs it as its own user"
    if "TZ" in line.env:
        yield f"TZ={line.env['TZ']} reaches the command; the times of the line are in {zone_of(line, tz)}"
    if line.env.get("CRON_TZ"):
        yield f"CRON_TZ is followed, as cronie does; Debian's cron ignores it and would run it in {tz}"
    if line.env.get("MAILTO"):
        yield f"output is not mailed to {line.env['MAILTO']}: it is kept as the job's log"


def _is_user(name: str) -> bool:
    try:
        return name == "root" or (shutil.which(name) is None and bool(pwd.getpwnam(name)))
    except (KeyError, ValueError):
        return False


def crontab_items(
    lines: list[CrontabLine], tasks: Tasks, *, tz: str, task: str | None, module: str, prefix: str, now: datetime
) -> list[Item]:
    """Every line with its schedule. Without a `task`, each line has a task of its own in `module`."""
    ids = distinct(id_of_command(line.command, prefix) if line.command else id_of(line.name, prefix) for line in lines)
    names = [task or f"{module}.{function}" for function in functions_of(ids)]
    return [
        _item(name, line, tasks, tz, own, now, has_code=task is None)
        for name, line, own in zip(ids, lines, names, strict=True)
    ]


def _item(name: str, line: CrontabLine, tasks: Tasks, tz: str, task: str, now: datetime, *, has_code: bool) -> Item:
    try:
        wanted = translate_line(line, tz, task, has_code=has_code)
        spec, warnings = tasks.spec(wanted, tz)
    except UnsupportedItem as err:
        return Item(id=name, name=line.name, old_text=line.old_text, reason=str(err))
    runs = runs_of_cron(MACROS.get(line.when.lower(), line.when), spec.tz, now)
    return Item(id=name, name=line.name, old_text=line.old_text, spec=spec, warnings=warnings, old_runs=runs)


def functions_of(ids: list[str]) -> list[str]:
    """The names of the functions that run the lines, each its own: `a-b` and `a_b` would otherwise be the same."""
    return distinct((_function_of(schedule_id) for schedule_id in ids), joint="_")


def _function_of(schedule_id: str) -> str:
    words = re.sub(r"\W+", "_", schedule_id)
    is_free = words[:1].isalpha() and not keyword.iskeyword(words) and words not in USED
    return words if is_free else f"run_{words}"


def code_of(items: list[Item], lines: list[CrontabLine], source: str) -> str:
    """A Python file with one task for each line. The commands are in it, and so under version control."""
    functions = functions_of([item.id for item in items])
    body = [
        text
        for item, line, function in zip(items, lines, functions, strict=True)
        if item.spec
        for text in _function(function, line)
    ]
    return CODE.format(source=source) + "\n".join(body) + "\n"


def _function(name: str, line: CrontabLine) -> Iterator[str]:
    options = "".join(f", {name}={value!r}" for name, value in _surroundings(line).items())
    yield from ("", "", "@app.task", f"def {name}():", f"    run({line.command!r}{options})")
