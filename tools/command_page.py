"""The page about the command line: every command with its usage, help and options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from rota.cli import endings
from rota.cli.main import SECTIONS
from tools.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# The command line

Type `rota …`, or `python -m rota …`. Commands write data to stdout, and remarks and progress to stderr. Text in a pipe
has no colour, and neither has any text if `NO_COLOR` is set. `rota completion bash` prints a script with which a shell
completes commands and options.
"""
JOB = "The id of a job. The beginning is enough if no other job's id begins so."
SCHEDULE = "The id of a schedule."
ARGUMENTS = {  # what is written without a name, by the group of its command
    "jobs": {"job_id": JOB, "ids": JOB},
    "schedules": {"ids": "Ids of schedules."},
    "documents": {"name": "The name of a document queue.", "names": "Names of document queues; without one, all."},
    "tenants": {"name": "The name of a tenant."},
    "queues": {"names": "Names of queues."},
    "alerts": {
        "name": "The name of the rule.",
        "names": "The names of stored rules.",
        "alert_id": "The id of an alert, as `rota alerts list` shows it.",
        "silenced": "The name of a rule, or the id of an alert.",
        "channel": "The name of a channel.",
    },
    "token": {"ids": "Ids of tokens, as `rota token list` shows them."},
    "why": {"name": "The id of a schedule, or of a job."},
    "lint": {"words": "Files to check, and the app; without one, rota.yaml."},
    "": {
        "target": "The app: jobs.py, package.module or module:app.",
        "named": "The app: jobs.py, package.module or module:app.",
        "task_name": "The name of a task. Its last part is enough if only one task's name ends so.",
        "words": "Arguments of the task, by position or by name. JSON is read as such.",
        "schedule_id": SCHEDULE,
        "document_id": "The id of a document.",
        "source": "The file, app, scheduler or address to read.",
        "collection": "The name of a collection.",
        "at": "An instant, or a wall time in the schedule's timezone; without it, the last expected time.",
        "expression": "The cron text, in quotes.",
        "shell": "The shell.",
    },
    "sources": {"source": "The name of a source."},
}


def command_page() -> str:
    parts = [HEAD, "## Exit codes", _exit_codes()]
    for title, commands in SECTIONS.items():
        parts.append(f"## {title}")
        for command in commands:
            parts += _command(command, f"rota {command.name}")
    return "\n\n".join(part.strip() for part in parts)


def _command(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command, info_name=path, parent=None, max_content_width=1_000)
    yield f"### {path}"
    yield (command.help or "").strip()
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _command(inner, f"{path} {name}")
        return
    usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]")
    yield f"```console\n$ {path} [OPTIONS] {usage}".rstrip() + "\n```"
    if command.epilog:
        yield command.epilog.strip()
    yield table(["option", "what it does"], [*_arguments(command, context, path), *_options(command, context)])


def _arguments(command: click.Command, context: click.Context, path: str) -> Iterator[list[str]]:
    group = path.split()[-2]
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Argument):
            name = parameter.name or ""
            own = ARGUMENTS.get(path.rsplit(maxsplit=1)[-1], {}) | ARGUMENTS.get(group, {})
            yield [f"`{parameter.make_metavar(context)}`", own.get(name) or ARGUMENTS[""].get(name, "")]


def _options(command: click.Command, context: click.Context) -> Iterator[list[str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and "--help" not in parameter.opts:
            yield [f"`{record[0]}`", " ".join(record[1].split())]


def _exit_codes() -> str:
    """As the module that ends commands says them."""
    text = " ".join((endings.__doc__ or "").partition("\n\n")[2].split()).rstrip(".")
    return table(["code", "meaning"], (re.split(r"(?<=\d) ", part, maxsplit=1) for part in text.split(", ")))
