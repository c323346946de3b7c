"""Every `rota …` command in the docs exists, with the options that it is shown with, and so do the answers of `why`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from rota.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
IN_CONSOLE = re.compile(r"^\$ (?:\S*/)?rota ((?:[^\n\\]|\\\n)+)", re.MULTILINE)
IN_TEXT = re.compile(r"`rota ([a-z][^`]*)`")
END = re.compile(r"[|<>#;&…]| - |\[OPTIONS\]")


def commands_of(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    found = [*IN_CONSOLE.findall(text), *(" ".join(said.split()) for said in IN_TEXT.findall(text))]
    return [END.split(said)[0].strip() for said in found]


def problem_of(said: str) -> str | None:
    """What is wrong with a command as it is written; None if it could be typed."""
    try:
        words = shlex.split(said)
    except ValueError:
        words = said.split()
    command: click.Command = main
    while words and isinstance(command, click.Group):
        name = words.pop(0)
        if name.startswith("-") or name.isupper():  # `rota --help`, `rota COMMAND`
            return None
        if name not in command.commands:
            return f"there is no command `rota {said}`"
        command = command.commands[name]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    unknown = [option for option in options if option not in known | {"--help", "-h"}]
    return f"`rota {said}` has no {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_command_and_option_exists(page: Path):
    assert [problem for said in commands_of(page) if (problem := problem_of(said))] == []


def test_a_command_that_does_not_exist_is_found():
    assert problem_of("jobs liszt") == "there is no command `rota jobs liszt`"
    assert problem_of("jobs list --wear x") == "`rota jobs list --wear x` has no --wear"
    assert problem_of("jobs list --where state:failed") is None


def test_the_answers_of_why_are_those_of_the_code():
    page = (ROOT / "docs" / "guides" / "problems.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/rota/model").rglob("*.py"))
    answers = set(re.findall(r"^\| `(waiting: [^`]+|not expected|due|ended|coalesced)`", page, re.MULTILINE))
    assert len(answers) > 8
    assert [answer for answer in answers if f'"{answer}"' not in code] == []
