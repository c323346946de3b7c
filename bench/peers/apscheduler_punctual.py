"""APScheduler 3: a job of every second in its background scheduler, in memory, run by its thread pool."""

import itertools
import logging

from apscheduler.schedulers.background import BackgroundScheduler
from punctual import Ran, main


def start(ran: Ran) -> BackgroundScheduler:
    logging.disable(logging.WARNING)
    scheduler, places = BackgroundScheduler(), itertools.count()

    def tick() -> None:
        ran(first + next(places))  # its grid; a job is not told what it stands for

    job = scheduler.add_job(tick, "interval", seconds=1)
    scheduler.start()
    first = job.next_run_time.timestamp()
    return scheduler


if __name__ == "__main__":
    main(start)
