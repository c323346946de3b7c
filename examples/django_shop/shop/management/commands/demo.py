"""`manage.py demo`: the tables, somebody who may log in, a worker, a scheduler and the site, in one process."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand

from rota.django import app


class Command(BaseCommand):
    """Starts everything until Ctrl-C."""

    help = "Start the shop with a worker and a scheduler."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("address", nargs="?", default="127.0.0.1:8000")

    def handle(self, *_: object, address: str, **__: Any) -> None:
        call_command("migrate", verbosity=0)
        if not User.objects.filter(username="admin").exists():
            User.objects.create_superuser("admin", password="admin")  # noqa: S106 - an example
        self.stdout.write(f"the shop is at http://{address}/; log in as admin with the password admin")
        with app.running():
            call_command("runserver", address, use_reloader=False)
