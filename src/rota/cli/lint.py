"""lint: everything that can be known to be wrong without a store, for people and for continuous integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.checks import Check, Facts
from rota.cli.endings import FAILED
from rota.cli.lint_rules import findings
from rota.cli.options import config_option, output_option
from rota.cli.output import Output, write
from rota.cli.words import count, listed, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command(epilog="TARGET is jobs.py, package.module or module:app; without it, ROTA_APP or rota.yaml says which.")
@click.argument("target", required=False)
@click.option("--strict", is_flag=True, help="Exit with 1 on a warning too.")
@config_option
@output_option
def lint(target: str | None, out: Output, *, strict: bool) -> None:
    """Look for mistakes in settings and code; needs no store."""
    found = list(findings(target))
    if out.form == "table":
        for line in _lines(found):
            write(line)
    else:
        out.rows(found, [], Facts, Check.facts, empty="")
    grave = {"problem", "warning"} if strict else {"problem"}
    click.get_current_context().exit(FAILED if any(check.verdict in grave for check in found) else 0)


def _lines(found: list[Check]) -> Iterator[str]:
    width = max((len(check.about) for check in found), default=0)
    for check in found:
        word = click.style(f"{check.verdict:<8}", fg=COLOURS[check.verdict])
        yield f"{word} {check.about:<{width}} {printable(check.finding)}"
        if check.todo:
            yield f"{'':{width + 10}}→ {check.todo}"
    verdicts = [check.verdict for check in found]
    parts = [count(verdicts.count(word), word) for word in ("problem", "warning") if word in verdicts]
    yield ""
    yield listed(parts) if parts else "all is well"
