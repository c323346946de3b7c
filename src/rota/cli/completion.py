"""Runs `completion`: prints the script that lets a shell complete commands, options and their values.

Values of a store or an app are read within two seconds, from a store that exists. If that fails for any reason, there
are no suggestions: no error is shown, and no file is created.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)
from click.types import StringParamType

from rota.cli.output import write
from rota.cli.suggestions import SOURCES, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = "rota"
VARIABLE = "_ROTA_COMPLETE"
PATIENCE = 2.0  # seconds that somebody waits who has pressed Tab, on a busy machine

INSTALL = {
    "bash": "rota completion bash > ~/.local/share/bash-completion/completions/rota",
    "zsh": 'rota completion zsh > "${fpath[1]}/_rota"',
    "fish": "rota completion fish > ~/.config/fish/completions/rota.fish",
}

_BASH = """\
%(complete_func)s() {
    local kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            file) compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                [[ $value == *: ]] && compopt -o nospace
                ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """Bash breaks words at colons, which filters have: so the line is taken whole, and answers begin after a colon."""

    source_template = _BASH

    @staticmethod
    def _check_version() -> None:
        """The script may be made on one machine for another."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        if _ends_between_words(line):
            words.append("")
        self._typed = words[-1]
        return words[1:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        value = str(item.value)
        if not os.environ.get("COMP_WORD", "").startswith(("'", '"')):
            before, colon, _ = self._typed.rpartition("=")[2].rpartition(":")
            value = value.removeprefix(before + colon)
        return f"{item.type},{value}"


class Suggested(StringParamType):
    """Text, for which a source has suggestions."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del param
        found: list[str] = []
        with _quietly():
            found = list(self._source(ctx, incomplete))
        if found == ["*.py"]:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(value) for value in found if value.startswith(incomplete)]


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALL)), metavar="bash|zsh|fish")
def completion(shell: str) -> None:
    """Print the script that makes a shell complete commands."""
    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has all three
    script = kind(root, {}, PROGRAM, VARIABLE).source().strip()
    first, _, rest = script.partition("\n")
    note = f"# Install: {INSTALL[shell]}  (then open a new shell)"
    write(f"{first}\n{note}\n{rest}" if first.startswith("#compdef") else f"{note}\n{script}")


def offer(group: click.Group, path: str = "") -> None:
    """Let every parameter whose name is in SOURCES suggest its values."""
    for name, command in group.commands.items():
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            offer(command, words)
        for parameter in command.params:
            source = SOURCES.get(f"{path} {parameter.name}".strip()) or SOURCES.get(f"* {parameter.name}")
            if source is not None and type(parameter.type) is StringParamType:
                parameter.type = Suggested(source)


def _ends_between_words(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError:  # inside a quote
        return False
    return line[-1:].isspace()


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress output and errors inside, such as what an app prints while it is imported, and limit the time."""
    sys.stdout.flush()
    nowhere, kept = os.open(os.devnull, os.O_WRONLY), (os.dup(1), os.dup(2))
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    except (Exception, SystemExit):  # noqa: BLE001, S110 - no suggestion is better than an error under the cursor
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.stdout.flush()
        for descriptor, original in zip((1, 2), kept, strict=True):
            os.dup2(original, descriptor)
            os.close(original)
        os.close(nowhere)


def _give_up(_number: int, _frame: object) -> NoReturn:
    raise TimeoutError


add_completion_class(Bash)
