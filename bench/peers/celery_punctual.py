"""Celery beat: an entry of every second, seen as beat sends it; what a worker would add comes on top."""

import logging
import threading
import time

from celery import Celery
from celery.beat import Scheduler
from punctual import Ran, main


class Exposition(Scheduler):
    """Sends to nobody: it says when it would."""

    ran: Ran

    def apply_entry(self, _, **__) -> None:
        self.ran(time.time())  # it knows no other time that this would stand for


def start(ran: Ran) -> Exposition:
    logging.disable(logging.WARNING)
    app = Celery("bench", broker="memory://")
    app.conf.beat_schedule = {"tick": {"task": "noop", "schedule": 1.0}}
    scheduler = Exposition(app)
    scheduler.ran = ran
    threading.Thread(target=loop, args=(scheduler,), daemon=True).start()
    return scheduler


def loop(scheduler: Exposition) -> None:
    while True:
        time.sleep(max(0.0, scheduler.tick()))


if __name__ == "__main__":
    main(start)
