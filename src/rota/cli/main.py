"""Defines the commands of `rota`, and turns errors into a line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from rota import __version__
from rota.cli import early
from rota.cli.agenda import agenda
from rota.cli.alerts import alerts
from rota.cli.completion import completion, offer
from rota.cli.config import config
from rota.cli.copy import copy
from rota.cli.demo import demo
from rota.cli.dev import dev
from rota.cli.doctor import doctor
from rota.cli.documents import documents
from rota.cli.endings import report_error
from rota.cli.enqueue import enqueue
from rota.cli.export import export
from rota.cli.groups import Group
from rota.cli.health import health
from rota.cli.imports import imports
from rota.cli.init import init
from rota.cli.jobs import jobs
from rota.cli.lint import lint
from rota.cli.next import next_runs
from rota.cli.operate import migrate, nodes, queues
from rota.cli.prune import prune
from rota.cli.run import run, scheduler, worker
from rota.cli.schedules import schedules
from rota.cli.sources import sources
from rota.cli.stats import stats
from rota.cli.tenants import tenants
from rota.cli.tokens import tokens
from rota.cli.top import top
from rota.cli.web import web
from rota.cli.why import why

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Run": (init, dev, demo, run, worker, scheduler, web),
    "Jobs": (enqueue, jobs, documents),
    "Schedules": (schedules, sources, tenants, why, agenda, next_runs, lint),
    "Operate": (top, stats, queues, nodes, alerts, health, doctor, prune, migrate, tokens, config, completion),
    "Move": (imports, export, copy),
}

SERVICES = {"run", "worker", "scheduler", "web", "dev", "demo"}


class Rota(Group):
    """The root command: its help has sections, and every error ends in one place."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except Exception as err:  # noqa: BLE001 - nobody should meet a traceback of ours
            code = report_error(err)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output has closed the pipe
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for what is flushed at exit
            return 0
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found = super().resolve_command(ctx, args)
        if found[0] not in SERVICES:
            early.release()  # those handle the signals that came before them
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(str(command.name), command.get_short_help_str(60)) for command in commands])


@click.group(cls=Rota, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rota", message="%(prog)s %(version)s")
def main() -> None:
    """Exact recurring work on crash-safe workers."""


for _command in (command for commands in SECTIONS.values() for command in commands):
    main.add_command(_command)
offer(main)
