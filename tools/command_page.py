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

`rota …`, or `python -m rota …`. Data goes to stdout, remarks and progress to stderr; there is no colour in a pipe, nor
where `NO_COLOR` is set. `rota completion bash` prints a script that makes a shell complete all of this.
"""


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
    yield table(["option", "what it does"], _options(command, context))


def _options(command: click.Command, context: click.Context) -> Iterator[list[str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and "--help" not in parameter.opts:
            yield [f"`{record[0]}`", " ".join(record[1].split())]


def _exit_codes() -> str:
    """As the module that ends commands says them."""
    text = " ".join((endings.__doc__ or "").partition("\n\n")[2].split()).rstrip(".")
    return table(["code", "meaning"], (re.split(r"(?<=\d) ", part, maxsplit=1) for part in text.split(", ")))
