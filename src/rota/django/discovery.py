"""Imports jobs.py of every installed app that has one. A jobs.py that fails is remembered, logged, and reported."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import NamedTuple

from django.apps import apps
from django.utils.module_loading import module_has_submodule

log = logging.getLogger("rota.django")

MODULE = "jobs"


class Broken(NamedTuple):
    """A module of jobs that cannot be imported, and why."""

    module: str
    error: Exception


_broken: list[Broken] = []


def discover() -> None:
    """Import the jobs of all installed apps."""
    _broken.clear()
    for config in apps.get_app_configs():
        if config.module is None or config.name == "rota.django" or not module_has_submodule(config.module, MODULE):
            continue
        name = f"{config.name}.{MODULE}"
        try:
            import_module(name)
        except Exception as err:
            log.exception("%s cannot be imported, so that its tasks are missing", name)
            _broken.append(Broken(name, err))


def broken() -> list[Broken]:
    """What the last discovery could not import."""
    return list(_broken)


def check_discovered() -> None:
    """Raise what the first broken module raised: nothing is run without its tasks."""
    if _broken:
        raise _broken[0].error
