"""Runs `manage.py rota …`: the command line of Rota, with the app of this project as its target."""

from __future__ import annotations

import os
from argparse import REMAINDER
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from rota.app import internals
from rota.config.settings import KEYS, value_at
from rota.django.current import get_app
from rota.django.discovery import check_discovered

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator

TARGET = "rota.django:app"
_OF_DJANGO = ("--settings", "--pythonpath")  # Django has read them already
_OF_PARENT = ("worker.processes", "worker.recycle_memory", "log.level", "log.format")  # read before an app is loaded


class Command(BaseCommand):
    """Passes its arguments on as they are."""

    help = "Runs workers and the scheduler, and shows and changes jobs and schedules: manage.py rota --help"
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """As typed into a terminal."""
        from rota.cli.entry import start  # noqa: PLC0415 - it brings in the whole library

        os.environ.update(variables())  # the workers that it starts read them, too
        start(without_django_options(argv[2:]), prog_name="manage.py rota")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("words", nargs=REMAINDER)

    def handle(self, *_: object, **options: Any) -> None:
        """As `call_command("rota", "jobs", "list")`."""
        from rota.cli.main import main  # noqa: PLC0415 - likewise

        with _in_environment(variables()):
            try:
                main(args=[*options["words"]], prog_name="manage.py rota")
            except SystemExit as end:
                if end.code:
                    raise CommandError("the command failed; its output says why", returncode=int(end.code)) from end


def variables() -> dict[str, str]:
    """What makes the app of this project the target, and the settings that the command line reads by itself."""
    check_discovered()
    wiring = internals(get_app())
    said = {"ROTA_APP": TARGET}
    for path in _OF_PARENT:
        if wiring.resolved.origins[path].kind == "code":
            said[KEYS[path].variable] = KEYS[path].text(value_at(wiring.settings, path))
    return said


@contextmanager
def _in_environment(said: dict[str, str]) -> Iterator[None]:
    """Set variables for the block: the process that called the command continues with its own."""
    before = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def without_django_options(words: list[str]) -> list[str]:
    """The words without `--settings X` and `--settings=X`, which Django takes from anywhere."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _OF_DJANGO:
            next(rest, None)
        elif not word.startswith(tuple(f"{name}=" for name in _OF_DJANGO)):
            kept.append(word)
    return kept
