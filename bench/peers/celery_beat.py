"""Celery beat with its default scheduler, which keeps its entries in a shelve; it fires into a queue in memory."""

import logging
from datetime import UTC, datetime, timedelta

from celery import Celery
from celery.beat import PersistentScheduler
from celery.schedules import crontab
from timetable import Timetable, main


class Beat(Timetable):
    """Entries as an app's configuration gives them."""

    def __init__(self) -> None:
        logging.disable(logging.INFO)
        self.app = Celery("bench", broker="memory://")
        self.scheduler = None

    def add(self, start: int, stop: int) -> None:
        rule = crontab("59", "23", day_of_month="31", month_of_year="12")
        self.configure({f"far-{number}": {"task": "noop", "schedule": rule} for number in range(start, stop)})

    def add_due(self, count: int) -> None:
        past = datetime.now(UTC) - timedelta(days=2)
        entry = {"task": "noop", "schedule": timedelta(days=1), "last_run_at": past}
        self.configure({f"due-{number}": entry for number in range(count)})
        self.scheduler.producer  # noqa: B018 - connects

    def configure(self, entries) -> None:
        self.app.conf.beat_schedule = {**self.app.conf.beat_schedule, **entries}
        if self.scheduler is not None:
            self.scheduler.close()
        self.scheduler = PersistentScheduler(self.app, schedule_filename="record_heartbeat")
        self.scheduler.sync()

    def wake(self) -> None:
        self.scheduler.tick()

    def fire(self) -> int:
        fired = 0
        while self.scheduler.tick() == 0:  # one a time
            fired += 1
        return fired


if __name__ == "__main__":
    main(Beat)
