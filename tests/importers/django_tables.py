"""Makes the tables of django-celery-beat by its own migrations and models, in a process of its own.

Usage: python django_tables.py SQLITE_PATH | POSTGRES_URL
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from urllib.parse import parse_qs, unquote, urlsplit

import django
from django.conf import settings
from django.core.management import call_command


def postgres(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    host = parts.hostname or parse_qs(parts.query).get("host", [""])[0]
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": host,
        "PORT": str(parts.port or parse_qs(parts.query).get("port", [""])[0]),
    }


def fill() -> None:
    from django_celery_beat import models as beat  # noqa: PLC0415 - after the setup

    make = beat.PeriodicTask.objects.create
    rules = (beat.CrontabSchedule, beat.IntervalSchedule, beat.ClockedSchedule, beat.SolarSchedule)
    crontab, interval, clocked, solar = (rule.objects.create for rule in rules)
    weekly = crontab(minute="30", hour="9", day_of_week="mon-fri", timezone="Europe/Paris")
    both = crontab(minute="0", hour="0", day_of_month="1-7", day_of_week="1")
    odd = crontab(minute="0", hour="0", day_of_month="13", day_of_week="5")
    soon = datetime(2099, 1, 1, 12, 30, 15, tzinfo=UTC)
    make(
        name="morning report",
        task="shop.report",
        crontab=weekly,
        args='["daily"]',
        kwargs='{"deep": {"n": 1}}',
        queue="mail",
        priority=5,
        expires=soon,
        description="for the boss",
    )
    make(name="first monday", task="shop.first", crontab=both)
    make(name="friday 13th", task="shop.bad_luck", crontab=odd)
    make(name="often", task="shop.often", interval=interval(every=90, period="seconds"), enabled=False)
    make(name="fast", task="shop.fast", interval=interval(every=10, period="microseconds"))
    make(name="later", task="shop.later", clocked=clocked(clocked_time=soon), one_off=True, expire_seconds=60)
    sun = solar(event="sunrise", latitude="52.5", longitude="13.4")
    make(name="at dawn", task="shop.dawn", solar=sun)
    make(name="a try", task="shop.try", interval=interval(every=1, period="hours"), one_off=True, start_time=soon)
    make(name="celery.backend_cleanup", task="celery.backend_cleanup", crontab=both)


def main() -> None:
    where = sys.argv[1]
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": where}
    database = postgres(where) if where.startswith("postgres") else sqlite
    settings.configure(
        DATABASES={"default": database}, INSTALLED_APPS=["django_celery_beat"], USE_TZ=True, TIME_ZONE="UTC"
    )
    django.setup()
    call_command("migrate", verbosity=0)
    fill()


if __name__ == "__main__":
    main()
