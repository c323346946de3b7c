"""A trigger says what it does in one sentence, with "and" and "or" where readers of cron differ."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from rota import calendar, cron, every, once

CRON = {
    "* * * * *": "Every minute, UTC",
    "*/5 * * * *": "Every 5 minutes, UTC",
    "0 0 * * *": "At 00:00 every day, UTC",
    "30 2 * * MON-FRI": "At 02:30 on Monday through Friday, UTC",
    "0 9,17 * * *": "At 09:00 and 17:00 every day, UTC",
    "15 * * * *": "At minute 15 past every hour, UTC",
    "*/5 9-17 * * mon-fri": "Every 5 minutes from 09:00 through 17:59 on Monday through Friday, UTC",
    "5 */2 * * *": "At minute 5 past every 2nd hour from 00:00 every day, UTC",
    "0 0 13 * FRI": "At 00:00 on day 13 of the month or on Friday (either is enough), UTC",
    "0 0 */2 * MON": "At 00:00 on every 2nd day of the month from the 1st and on Monday (both must match), UTC",
    "0 9 1 * *": "At 09:00 on day 1 of the month, UTC",
    "0 9 L * *": "At 09:00 on the last day of the month, UTC",
    "0 9 L-3 * *": "At 09:00 on 3 days before the last day of the month, UTC",
    "0 9 15W * *": "At 09:00 on the weekday nearest day 15 of the month, UTC",
    "0 9 LW * *": "At 09:00 on the last weekday (Monday to Friday) of the month, UTC",
    "0 9 L-3W * *": "At 09:00 on the weekday nearest to 3 days before the last day of the month, UTC",
    "0 9 15,L-1W * *": (
        "At 09:00 on day 15 of the month or the weekday nearest to 1 day before the last day of the month, UTC"
    ),
    "0 */24 * * *": "At 00:00 every day, UTC",
    "*/60 * * * *": "At minute 0 past every hour, UTC",
    "0 0 * */12 *": "At 00:00 every day in January, UTC",
    "0 0 * * */7": "At 00:00 on Sunday, UTC",
    "0 0 */31 * MON": "At 00:00 on day 1 of the month and on Monday (both must match), UTC",
    "0 0 2,*/25,*/12 * TUE": (
        "At 00:00 on days 1, 2, 13, 25 and 26 of the month or on Tuesday (either is enough), UTC"
    ),
    "0 0 */12,2 * TUE": "At 00:00 on days 1, 2, 13 and 25 of the month and on Tuesday (both must match), UTC",
    "* 30 9 * * *": "Every second of minute 30 from 09:00 through 09:59 every day, UTC",
    "* * 0,12 * * *": "Every second in every 12th hour from 00:00 every day, UTC",
    "0 9 * * MON#2": "At 09:00 on the second Monday of the month, UTC",
    "0 9 * * FRIL": "At 09:00 on the last Friday of the month, UTC",
    "0 0 1 1,7 *": "At 00:00 on day 1 of the month in January and July, UTC",
    "0 0 12 ? * MON 2027-2029": "At 12:00 on Monday in the years 2027 through 2029, UTC",
    "0/1 * 0 ? * * *": "Every second from 00:00 through 00:59 every day, UTC",
    "*/10 * * * * *": "Every 10 seconds, UTC",
}


@pytest.mark.parametrize(("expression", "sentence"), CRON.items(), ids=CRON)
def test_cron_is_explained_in_one_sentence(expression: str, sentence: str):
    assert cron(expression).explain() == sentence


def test_the_zone_is_part_of_the_sentence():
    assert cron("0 9 * * *", tz="Europe/Paris").explain() == "At 09:00 every day, Europe/Paris time"


OTHERS = [
    (every("1h30m"), "Every 1 hour 30 minutes"),
    (every("1d"), "Every day"),
    (every("90s", start=datetime(2026, 1, 1, tzinfo=UTC)), "Every 1 minute 30 seconds from 2026-01-01 00:00:00 UTC"),
    (once(datetime(2026, 1, 1, 9, tzinfo=UTC)), "Once, on 2026-01-01 at 09:00:00, UTC"),
    (once(datetime(1970, 1, 1, tzinfo=UTC)), "Only when it is started by hand"),
    (calendar(days=1, at="00:05"), "Every day at 00:05, UTC"),
    (calendar(weeks=2, on="tue", at="09:00"), "Every 2 weeks on Tuesday at 09:00, UTC"),
    (
        calendar(months=1, at="00:05", start=date(2026, 1, 31)),
        "Every month on the 31st (or the month's last day) at 00:05 from 2026-01-31, UTC",
    ),
    (
        calendar(months=1, start=date(2026, 1, 31), month_end="skip"),
        "Every month on the 31st (months without it are skipped) at 00:00 from 2026-01-31, UTC",
    ),
    (calendar(months=1, month_end="last"), "Every month on the last day of the month at 00:00, UTC"),
    (calendar(months=2, on="tue", nth=2), "Every 2 months on the second Tuesday at 00:00, UTC"),
    (calendar(years=1, start=date(2024, 5, 4)), "Every year on the 4th of May at 00:00 from 2024-05-04, UTC"),
    (
        calendar(years=1, on="fri", nth="last", start=date(2026, 3, 1)).bound(),
        "Every year on the last Friday of March at 00:00 from 2026-03-01, UTC",
    ),
]


@pytest.mark.parametrize(("trigger", "sentence"), OTHERS, ids=[sentence for _, sentence in OTHERS])
def test_intervals_are_explained_in_one_sentence(trigger, sentence: str):
    assert trigger.explain() == sentence
