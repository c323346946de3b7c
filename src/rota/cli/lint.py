"""Runs `lint`: finds all mistakes that show without a store, for people and for continuous integration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.checks import Check, show_checks
from rota.cli.endings import FAILED
from rota.cli.lint_rules import findings
from rota.cli.options import config_option, output_option
from rota.config.environment import CONFIG

if TYPE_CHECKING:
    from rota.cli.output import Output

SUFFIXES = (".yaml", ".yml")


@click.command(
    epilog="FILE is a file of settings, *.yaml or *.yml; without one, the rota.yaml of this project is looked at. "
    "TARGET is jobs.py, package.module or module:app; without it, ROTA_APP or the file says which."
)
@click.argument("words", nargs=-1, metavar="[FILE]... [TARGET]")
@click.option("--strict", is_flag=True, help="Exit with 1 on a warning too.")
@config_option
@output_option
def lint(words: tuple[str, ...], out: Output, *, strict: bool) -> None:
    """Check settings and code for mistakes; needs no store."""
    files, target = _files_and_target(words)
    found = [check for file in files for check in _findings_of(file, target)] if files else list(findings(target))
    show_checks(found, out, width=max((len(check.about) for check in found), default=0))
    grave = {"problem", "warning"} if strict else {"problem"}
    click.get_current_context().exit(FAILED if any(check.verdict in grave for check in found) else 0)


def _findings_of(file: Path, target: str | None) -> list[Check]:
    """With the file as that of the settings, also for the app that is loaded."""
    before = os.environ.get(CONFIG)
    os.environ[CONFIG] = str(file.absolute())
    try:
        return list(findings(target, must_load=target is not None))
    finally:
        if before is None:
            del os.environ[CONFIG]
        else:
            os.environ[CONFIG] = before


def _files_and_target(words: tuple[str, ...]) -> tuple[list[Path], str | None]:
    files = [Path(word) for word in words if word.endswith(SUFFIXES)]
    targets = [word for word in words if not word.endswith(SUFFIXES)]
    missing = [file for file in files if not file.exists()]
    if missing:
        raise click.UsageError(f"there is no file {missing[0]}")
    if len(targets) > 1:
        raise click.UsageError(f"{targets[0]} and {targets[1]} are two targets; give one, and any number of YAML files")
    return files, targets[0] if targets else None
