"""Writes rq_scheduler.json: what rq-scheduler itself keeps in Redis, and the next runs by its own computation.

It is recorded, because rq-scheduler and django-celery-beat cannot be installed in one environment: each brings a
module named `crontab`. To record it again, in an environment with rq-scheduler alone:

    python record_rq_scheduler.py redis://127.0.0.1:6379/0 > rq_scheduler.json    # an empty database
"""

from __future__ import annotations

import base64
import json
import random
import sys
import warnings
from datetime import UTC, datetime, timedelta

import crontab
import redis
from rq_scheduler import Scheduler

warnings.simplefilter("ignore")  # crontab's advice about timezones
NOON = datetime(2026, 3, 7, 12)
MINUTES = ("0", "*/15", "5", "10-20", "*", "1-30/7", "59")
HOURS = ("0", "*/6", "9-17", "*", "1-23/5", "23")
DAYS = ("*", "1", "13", "*/10", "1-7", "8-14", "29-31", "l", "?")
MONTHS = ("*", "2", "1-3", "*/3", "jan", "jun-aug")
WEEKDAYS = ("*", "0", "fri", "mon-fri", "7", "sat-sun", "*/2", "l5", "?")
YEARS = ("", " *", " 2027")


def rules() -> list[str]:
    choice = random.Random(20)
    made = [
        " ".join(choice.choice(values) for values in (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)) + choice.choice(YEARS)
        for _ in range(120)
    ]
    return [*made, "@daily", "@hourly", "*/20 0 9 * * mon *", "30 */5 * * * * *"]


def runs(rule: str) -> list[str]:
    """The next three runs on the wall clock, as `get_next_scheduled_time` computes them."""
    found, at = [], NOON
    for _ in range(3):
        at = crontab.CronTab(rule).next(now=at, return_datetime=True, default_utc=False)
        if at is None:
            break
        found.append(at.isoformat())
    return found


def schedule(client: redis.Redis) -> None:
    scheduler = Scheduler(connection=client, queue_name="mail")
    scheduler.cron("0 9 * * 1-5", "shop.daily", args=["a"], kwargs={"b": 2}, use_local_timezone=True, id="daily")
    scheduler.cron("0 9 13 * 5", "shop.both", id="both")
    scheduler.cron("*/20 * * * *", "shop.counted", id="counted", repeat=4, queue_name="other", timeout=30)
    start = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)
    scheduler.schedule(start, "shop.often", interval=90, repeat=3, id="often")
    scheduler.schedule(start, "shop.for_ever", interval=60, id="for_ever", meta={"note": "ours"})
    scheduler.enqueue_at(datetime(2099, 1, 1), "shop.later", 1, job_id="later")


def main() -> None:
    client = redis.Redis.from_url(sys.argv[1])
    schedule(client)
    jobs = {
        key.decode(): {field.decode(): base64.b64encode(value).decode() for field, value in client.hgetall(key).items()}
        for key in sorted(client.keys("rq:job:*"))
    }
    scores = {name.decode(): at for name, at in client.zrange("rq:scheduler:scheduled_jobs", 0, -1, withscores=True)}
    kept = {"after": NOON.isoformat(), "runs": {rule: runs(rule) for rule in rules()}, "scores": scores, "jobs": jobs}
    sys.stdout.write(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
