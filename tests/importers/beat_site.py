"""A Django site with django-celery-beat, its Celery app, and the record that every run leaves, of beat's and of Rota's.

`BEAT_DATABASE` and `BEAT_BROKER` say where. `python beat_site.py make` makes the tables, and one item for each word
`name=seconds` that follows. `celery -A beat_site beat` and `celery -A beat_site worker` run it.
"""

from __future__ import annotations

import os
import sys

import django
import psycopg
from celery import Celery
from django.conf import settings
from django_tables import postgres

DATABASE = os.environ["BEAT_DATABASE"]

if not settings.configured:
    settings.configure(
        DATABASES={"default": postgres(DATABASE)}, INSTALLED_APPS=["django_celery_beat"], USE_TZ=True, TIME_ZONE="UTC"
    )
    django.setup()

app = Celery("beat_site", broker=os.environ["BEAT_BROKER"], set_as_current=False)
app.conf.update(
    beat_scheduler="django_celery_beat.schedulers:DatabaseScheduler",
    beat_sync_every=1,  # as the guide advises for a take-over
    beat_max_loop_interval=int(os.environ.get("BEAT_LOOP", "5")),
    task_ignore_result=True,
    task_acks_late=True,  # a worker that is killed loses nothing
    task_reject_on_worker_lost=True,
    broker_transport_options={"visibility_timeout": 30},
    worker_prefetch_multiplier=1,
)


def record(system: str, name: str, key: str) -> None:
    """One line for each run; a second delivery of one message, or of one job, is the same run."""
    with psycopg.connect(DATABASE, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO runs (system, name, key, at) VALUES (%s, %s, %s, clock_timestamp()) "
            "ON CONFLICT (system, name, key) DO UPDATE SET deliveries = runs.deliveries + 1",
            [system, name, key],
        )


@app.task(name="shop.tick", bind=True)
def tick(self, name: str) -> None:
    record("beat", name, self.request.id)


def make(words: list[str]) -> None:
    from django.core.management import call_command  # noqa: PLC0415 - after the setup
    from django_celery_beat import models as beat  # noqa: PLC0415 - likewise

    call_command("migrate", verbosity=0)
    with psycopg.connect(DATABASE, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE runs (number serial, system text, name text, key text, at timestamptz, "
            "deliveries int DEFAULT 1, UNIQUE (system, name, key))"
        )
    for name, said in (word.split("=") for word in words):
        rule = (
            {"interval": beat.IntervalSchedule.objects.create(every=int(said), period="seconds")}
            if said.isdigit()
            else {"crontab": beat.CrontabSchedule.objects.create(minute=said)}
        )
        beat.PeriodicTask.objects.create(name=name, task="shop.tick", args=f'["{name}"]', **rule)


if __name__ == "__main__":
    make(sys.argv[2:])
