"""Cron does what these tables say: where the clock jumps or repeats, what the syntax means, what is refused.

A time in a gap runs once, at the first instant after it, and is dropped where the expression runs in every hour
or the whole date is missing. A time in a fold runs on the first pass; a cadence (`*`, `*/n`, `0/n` or the full
range in the second, minute or hour field) runs on both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reference.cron_reference import runs_of
from reference.local_text import moment, runs_after, shown
from reference.zones import instant, load
from rota import BadCron, BadCronField, BadTrigger, NaiveDatetime, UnknownZone, cron, every, trigger_from_text

NY = "America/New_York"
LONDON = "Europe/London"
LORD_HOWE = "Australia/Lord_Howe"
TROLL = "Antarctica/Troll"
CASEY = "Antarctica/Casey"
CASABLANCA = "Africa/Casablanca"
CAIRO = "Africa/Cairo"
BEIRUT = "Asia/Beirut"
SANTIAGO = "America/Santiago"
HAVANA = "America/Havana"
NUUK = "America/Nuuk"
AZORES = "Atlantic/Azores"
CHATHAM = "Pacific/Chatham"
APIA = "Pacific/Apia"
ST_JOHNS = "America/St_Johns"
PYONGYANG = "Asia/Pyongyang"
RECIFE = "America/Recife"

# expression, zone, after, the next runs
GAPS = [
    ("30 2 * * *", NY, "2026-03-07 12:00", ["2026-03-08 03:00-04", "2026-03-09 02:30-04"]),
    (
        "0,30 2 * * *",
        NY,
        "2026-03-07 12:00",
        ["2026-03-08 03:00-04", "2026-03-09 02:00-04", "2026-03-09 02:30-04"],
    ),
    (
        "*/30 * * * *",
        NY,
        "2026-03-08 01:00",
        ["2026-03-08 01:30-05", "2026-03-08 03:00-04", "2026-03-08 03:30-04"],
    ),
    (
        "15 * * * *",
        NY,
        "2026-03-08 00:30",
        ["2026-03-08 01:15-05", "2026-03-08 03:15-04", "2026-03-08 04:15-04"],
    ),
    (
        "*/15 2 * * *",
        NY,
        "2026-03-07 12:00",
        ["2026-03-08 03:00-04", "2026-03-09 02:00-04", "2026-03-09 02:15-04"],
    ),
    (
        "0 */2 * * *",
        NY,
        "2026-03-07 23:30",
        ["2026-03-08 00:00-05", "2026-03-08 03:00-04", "2026-03-08 04:00-04", "2026-03-08 06:00-04"],
    ),
    (
        "30 1-3 * * *",
        NY,
        "2026-03-07 23:30",
        ["2026-03-08 01:30-05", "2026-03-08 03:00-04", "2026-03-08 03:30-04", "2026-03-09 01:30-04"],
    ),
    ("0 30 2 * * ? *", NY, "2026-03-07 12:00", ["2026-03-08 03:00-04", "2026-03-09 02:30-04"]),
    ("0 30 2 * * *", NY, "2026-03-07 12:00", ["2026-03-08 03:00-04", "2026-03-09 02:30-04"]),
    ("30 1 * * *", LONDON, "2026-03-28 12:00", ["2026-03-29 02:00+01", "2026-03-30 01:30+01"]),
    ("15 2 * * *", LORD_HOWE, "2026-10-03 12:00", ["2026-10-04 02:30+11", "2026-10-05 02:15+11"]),
    ("0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", ["2018-11-04 01:00-02", "2018-11-05 00:00-02"]),
    ("0 12 * * *", APIA, "2011-12-28 13:00", ["2011-12-29 12:00-10", "2011-12-31 12:00+14"]),
    ("0 12 30 * *", APIA, "2011-12-28 13:00", ["2012-01-30 12:00+14"]),
    ("30 2 * * *", CASABLANCA, "2026-03-21 12:00", ["2026-03-22 03:00+01"]),
    (
        "0 */12 * * *",
        CAIRO,
        "2026-04-23 10:00",
        ["2026-04-23 12:00+02", "2026-04-24 01:00+03", "2026-04-24 12:00+03"],
    ),
    ("30 23 * * *", NUUK, "2026-03-28 12:00", ["2026-03-29 00:00-01", "2026-03-29 23:30-01"]),
    # from inside and from the edges of the jump
    ("30 2 * * *", NY, "2026-03-08 01:59:59-05", ["2026-03-08 03:00-04", "2026-03-09 02:30-04"]),
    ("30 2 * * *", NY, "2026-03-08 03:00-04", ["2026-03-09 02:30-04"]),
    ("0 3 * * *", NY, "2026-03-07 12:00", ["2026-03-08 03:00-04", "2026-03-09 03:00-04"]),
    ("0,30 2,3 * * *", NY, "2026-03-07 12:00", ["2026-03-08 03:00-04", "2026-03-08 03:30-04"]),
    ("* 2 * * *", NY, "2026-03-07 12:00", ["2026-03-08 03:00-04", "2026-03-09 02:00-04"]),
    ("15 30 2 * * *", NY, "2026-03-07 12:00", ["2026-03-08 03:00-04", "2026-03-09 02:30:15-04"]),
    (
        "*/30 * * * * *",
        NY,
        "2026-03-08 01:59:15",
        ["2026-03-08 01:59:30-05", "2026-03-08 03:00-04", "2026-03-08 03:00:30-04"],
    ),
    ("15 0-23 * * *", NY, "2026-03-08 00:30", ["2026-03-08 01:15-05", "2026-03-08 03:15-04"]),
    ("15 */1 * * *", NY, "2026-03-08 00:30", ["2026-03-08 01:15-05", "2026-03-08 03:15-04"]),
    ("30 2 8 3 *", NY, "2026-01-01 00:00", ["2026-03-08 03:00-04", "2027-03-08 02:30-05"]),
    ("30 2 * * SUN#2", NY, "2026-03-01 12:00", ["2026-03-08 03:00-04", "2026-04-12 02:30-04"]),
    # gaps of other lengths and at other hours
    (
        "30 1,2 * * *",
        TROLL,
        "2025-03-29 12:00",
        ["2025-03-30 03:00+02", "2025-03-31 01:30+02", "2025-03-31 02:30+02"],
    ),
    ("15 * * * *", TROLL, "2025-03-30 00:00", ["2025-03-30 00:15+00", "2025-03-30 03:15+02"]),
    ("0 2,3,4,5 * * *", CASEY, "2009-10-17 12:00", ["2009-10-18 05:00+11", "2009-10-19 02:00+11"]),
    ("0 2 * * *", LORD_HOWE, "2025-10-04 12:00", ["2025-10-05 02:30+11", "2025-10-06 02:00+11"]),
    ("10 * * * *", LORD_HOWE, "2025-10-05 01:00", ["2025-10-05 01:10+10:30", "2025-10-05 03:10+11"]),
    ("0 2 * * *", CASABLANCA, "2025-04-05 12:00", ["2025-04-06 03:00+01", "2025-04-07 02:00+01"]),
    ("0 2 * * *", "Asia/Gaza", "2025-04-11 12:00", ["2025-04-12 03:00+03", "2025-04-13 02:00+03"]),
    ("30 1 * * *", "Europe/Dublin", "2025-03-29 12:00", ["2025-03-30 02:00+01", "2025-03-31 01:30+01"]),
    ("0 3 * * *", CHATHAM, "2025-09-27 12:00", ["2025-09-28 03:45+13:45", "2025-09-29 03:00+13:45"]),
    ("30 2 * * *", CHATHAM, "2025-09-27 12:00", ["2025-09-28 02:30+12:45", "2025-09-29 02:30+13:45"]),
    (
        "0 2-4 * * *",
        CHATHAM,
        "2025-09-28 01:00",
        ["2025-09-28 02:00+12:45", "2025-09-28 03:45+13:45", "2025-09-28 04:00+13:45"],
    ),
    (
        "*/10 2 1 * *",
        "America/Caracas",
        "2016-05-01 02:05",
        ["2016-05-01 02:10-04:30", "2016-05-01 02:20-04:30", "2016-05-01 03:00-04", "2016-06-01 02:00-04"],
    ),
    ("30 12 * * *", "Africa/Khartoum", "2000-01-14 13:00", ["2000-01-15 13:00+03", "2000-01-16 12:30+03"]),
    ("10 0 * * *", "Asia/Kathmandu", "1985-12-31 12:00", ["1986-01-01 00:15+05:45", "1986-01-02 00:10+05:45"]),
    ("0 0 * * *", "Africa/Monrovia", "1972-01-06 12:00", ["1972-01-07 00:44:30+00", "1972-01-08 00:00+00"]),
    # gaps at midnight, where a date begins late or a run moves to the next date
    (
        "*/20 0 * * *",
        CAIRO,
        "2025-04-24 12:00",
        ["2025-04-25 01:00+03", "2025-04-26 00:00+03", "2025-04-26 00:20+03"],
    ),
    ("0 0 * * *", BEIRUT, "2025-03-29 12:00", ["2025-03-30 01:00+03", "2025-03-31 00:00+03"]),
    ("0 0 * * SUN", BEIRUT, "2025-03-29 12:00", ["2025-03-30 01:00+03", "2025-04-06 00:00+03"]),
    ("15 0 * * *", SANTIAGO, "2025-09-06 12:00", ["2025-09-07 01:00-03", "2025-09-08 00:15-03"]),
    ("0 0 * * *", HAVANA, "2025-03-08 12:00", ["2025-03-09 01:00-04", "2025-03-10 00:00-04"]),
    ("0 0 * * *", AZORES, "2025-03-29 12:00", ["2025-03-30 01:00+00", "2025-03-31 00:00+00"]),
    ("0 0 * * *", ST_JOHNS, "2006-04-01 12:00", ["2006-04-02 00:00-03:30", "2006-04-03 00:00-02:30"]),
    ("30 0 * * *", ST_JOHNS, "2006-04-01 12:00", ["2006-04-02 01:01-02:30", "2006-04-03 00:30-02:30"]),
    (
        "0,30 23 * * *",
        NUUK,
        "2024-03-30 12:00",
        ["2024-03-31 00:00-01", "2024-03-31 23:00-01", "2024-03-31 23:30-01"],
    ),
    ("0 0,23 * * *", NUUK, "2024-03-30 12:00", ["2024-03-31 00:00-01", "2024-03-31 23:00-01"]),
    ("0 23 30 * *", NUUK, "2024-03-30 12:00", ["2024-03-31 00:00-01", "2024-04-30 23:00-01"]),
    ("0 23 31 * *", NUUK, "2024-03-30 12:00", ["2024-03-31 23:00-01", "2024-05-31 23:00-01"]),
    ("45 23 * * FRI", PYONGYANG, "2018-05-04 12:00", ["2018-05-05 00:00+09", "2018-05-11 23:45+09"]),
    # summer time that lasted a week
    ("0 0 * * *", RECIFE, "2000-10-07 12:00", ["2000-10-08 01:00-02", "2000-10-09 00:00-02"]),
    ("0 12 8,20 * *", RECIFE, "2000-09-20 12:00", ["2000-10-08 12:00-02", "2000-10-20 12:00-03"]),
    # whole dates that never were
    (
        "*/30 * * * *",
        APIA,
        "2011-12-29 23:00",
        ["2011-12-29 23:30-10", "2011-12-31 00:00+14", "2011-12-31 00:30+14"],
    ),
    ("0 0 * * FRI", APIA, "2011-12-28 12:00", ["2012-01-06 00:00+14"]),
    ("0 0 L * *", APIA, "2011-12-28 12:00", ["2011-12-31 00:00+14"]),
    ("0 6 29,30 12 *", APIA, "2011-12-29 12:00", ["2012-12-29 06:00+14", "2012-12-30 06:00+14"]),
    ("0 0 30 12 *", "Pacific/Fakaofo", "2011-12-01 00:00", ["2012-12-30 00:00+13"]),
    ("0 0 * * *", "Pacific/Kwajalein", "1993-08-20 12:00", ["1993-08-22 00:00+12"]),
    ("0 12 21 8 *", "Pacific/Kwajalein", "1993-08-01 00:00", ["1994-08-21 12:00+12"]),
    ("0 9 31 12 *", "Pacific/Kiritimati", "1994-12-01 00:00", ["1995-12-31 09:00+14"]),
]

FOLDS = [
    ("30 1 * * *", NY, "2026-10-31 12:00", ["2026-11-01 01:30-04", "2026-11-02 01:30-05"]),
    ("30 1 * * *", NY, "2026-11-01 01:10-05", ["2026-11-02 01:30-05"]),
    (
        "*/30 * * * *",
        NY,
        "2026-11-01 00:30",
        [
            "2026-11-01 01:00-04",
            "2026-11-01 01:30-04",
            "2026-11-01 01:00-05",
            "2026-11-01 01:30-05",
            "2026-11-01 02:00-05",
        ],
    ),
    (
        "0 1-3 * * *",
        NY,
        "2026-10-31 23:30",
        ["2026-11-01 01:00-04", "2026-11-01 02:00-05", "2026-11-01 03:00-05", "2026-11-02 01:00-05"],
    ),
    (
        "*/30 1 * * *",
        NY,
        "2026-11-01 00:30",
        [
            "2026-11-01 01:00-04",
            "2026-11-01 01:30-04",
            "2026-11-01 01:00-05",
            "2026-11-01 01:30-05",
            "2026-11-02 01:00-05",
        ],
    ),
    ("30 1 * * *", LONDON, "2026-10-24 12:00", ["2026-10-25 01:30+01", "2026-10-26 01:30+00"]),
    (
        "*/15 * * * *",
        LORD_HOWE,
        "2026-04-05 01:20+11",
        [
            "2026-04-05 01:30+11",
            "2026-04-05 01:45+11",
            "2026-04-05 01:30+10:30",
            "2026-04-05 01:45+10:30",
            "2026-04-05 02:00+10:30",
        ],
    ),
    ("30 2 * * *", CASABLANCA, "2026-02-14 12:00", ["2026-02-15 02:30+01", "2026-02-16 02:30+00"]),
    # what is a cadence and what is not
    (
        "0,30 1 * * *",
        NY,
        "2026-11-01 00:30",
        ["2026-11-01 01:00-04", "2026-11-01 01:30-04", "2026-11-02 01:00-05"],
    ),
    ("0/30 1 * * *", NY, "2026-11-01 01:30-04", ["2026-11-01 01:00-05", "2026-11-01 01:30-05"]),
    ("0-59/30 1 * * *", NY, "2026-11-01 01:30-04", ["2026-11-01 01:00-05", "2026-11-01 01:30-05"]),
    ("0-58/30 1 * * *", NY, "2026-11-01 01:30-04", ["2026-11-02 01:00-05"]),
    ("5/30 1 * * *", NY, "2026-11-01 01:35-04", ["2026-11-02 01:05-05"]),
    ("5,*/30 1 * * *", NY, "2026-11-01 01:30-04", ["2026-11-01 01:00-05", "2026-11-01 01:05-05"]),
    ("0,30 * * * *", NY, "2026-11-01 01:30-04", ["2026-11-01 01:00-05", "2026-11-01 01:30-05"]),
    ("30 0-23 * * *", NY, "2026-11-01 00:45", ["2026-11-01 01:30-04", "2026-11-01 01:30-05"]),
    ("30 1-23/2 * * *", NY, "2026-11-01 00:45", ["2026-11-01 01:30-04", "2026-11-01 03:30-05"]),
    (
        "0 */2 * * *",
        CASABLANCA,
        "2025-02-23 01:00",
        ["2025-02-23 02:00+01", "2025-02-23 02:00+00", "2025-02-23 04:00+00"],
    ),
    ("0 0-22/2 * * *", CASABLANCA, "2025-02-23 01:00", ["2025-02-23 02:00+01", "2025-02-23 04:00+00"]),
    (
        "*/20 59 1 * * *",
        NY,
        "2026-11-01 01:59:20-04",
        [
            "2026-11-01 01:59:40-04",
            "2026-11-01 01:59-05",
            "2026-11-01 01:59:20-05",
            "2026-11-01 01:59:40-05",
            "2026-11-02 01:59-05",
        ],
    ),
    ("20,40 59 1 * * *", NY, "2026-11-01 01:59:20-04", ["2026-11-01 01:59:40-04", "2026-11-02 01:59:20-05"]),
    ("30 1 1 11 *", NY, "2026-10-31 12:00", ["2026-11-01 01:30-04", "2027-11-01 01:30-04"]),
    # folds of other lengths and at other hours
    ("30 1 * * *", TROLL, "2025-10-25 12:00", ["2025-10-26 01:30+02", "2025-10-27 01:30+00"]),
    (
        "0 * * * *",
        TROLL,
        "2025-10-26 00:30",
        [
            "2025-10-26 01:00+02",
            "2025-10-26 02:00+02",
            "2025-10-26 01:00+00",
            "2025-10-26 02:00+00",
            "2025-10-26 03:00+00",
        ],
    ),
    ("45 1 * * *", LORD_HOWE, "2025-04-05 12:00", ["2025-04-06 01:45+11", "2025-04-07 01:45+10:30"]),
    ("15 2 * * *", CASABLANCA, "2025-02-22 12:00", ["2025-02-23 02:15+01", "2025-02-24 02:15+00"]),
    ("0 3 * * *", CHATHAM, "2025-04-05 12:00", ["2025-04-06 03:00+13:45", "2025-04-07 03:00+12:45"]),
    (
        "30 * * * *",
        CHATHAM,
        "2025-04-06 02:00",
        [
            "2025-04-06 02:30+13:45",
            "2025-04-06 03:30+13:45",
            "2025-04-06 03:30+12:45",
            "2025-04-06 04:30+12:45",
        ],
    ),
    ("30 1 * * *", "Europe/Moscow", "2014-10-25 12:00", ["2014-10-26 01:30+04", "2014-10-27 01:30+03"]),
    # folds at midnight, where a date begins twice or is entered again from the next one
    ("0 23 * * *", CAIRO, "2025-10-30 12:00", ["2025-10-30 23:00+03", "2025-10-31 23:00+02"]),
    ("0 0 * * *", CAIRO, "2025-10-30 12:00", ["2025-10-31 00:00+02", "2025-11-01 00:00+02"]),
    (
        "*/30 * * * *",
        CAIRO,
        "2025-10-30 22:45",
        [
            "2025-10-30 23:00+03",
            "2025-10-30 23:30+03",
            "2025-10-30 23:00+02",
            "2025-10-30 23:30+02",
            "2025-10-31 00:00+02",
        ],
    ),
    ("30 23 * * SAT", BEIRUT, "2025-10-25 12:00", ["2025-10-25 23:30+03", "2025-11-01 23:30+02"]),
    (
        "*/20 23 * * *",
        SANTIAGO,
        "2025-04-05 23:10-03",
        [
            "2025-04-05 23:20-03",
            "2025-04-05 23:40-03",
            "2025-04-05 23:00-04",
            "2025-04-05 23:20-04",
            "2025-04-05 23:40-04",
            "2025-04-06 23:00-04",
        ],
    ),
    ("0 0 * * *", HAVANA, "2025-11-01 12:00", ["2025-11-02 00:00-04", "2025-11-03 00:00-05"]),
    ("30 0 * * *", HAVANA, "2025-11-02 00:10-05", ["2025-11-03 00:30-05"]),
    (
        "0 * * * *",
        HAVANA,
        "2025-11-01 23:30",
        ["2025-11-02 00:00-04", "2025-11-02 00:00-05", "2025-11-02 01:00-05"],
    ),
    ("30 23 * * *", RECIFE, "2000-10-14 12:00", ["2000-10-14 23:30-02", "2000-10-15 23:30-03"]),
    ("30 23 * * *", NUUK, "2024-10-26 12:00", ["2024-10-26 23:30-01", "2024-10-27 23:30-02"]),
    ("0 0 * * *", NUUK, "2024-10-26 12:00", ["2024-10-27 00:00-02", "2024-10-28 00:00-02"]),
    (
        "*/30 0 * * *",
        AZORES,
        "2025-10-25 23:00",
        [
            "2025-10-26 00:00+00",
            "2025-10-26 00:30+00",
            "2025-10-26 00:00-01",
            "2025-10-26 00:30-01",
            "2025-10-27 00:00-01",
        ],
    ),
    ("45 23 * * *", PYONGYANG, "2015-08-14 12:00", ["2015-08-14 23:45+09", "2015-08-15 23:45+08:30"]),
    ("0 0 * * *", ST_JOHNS, "2006-10-28 12:00", ["2006-10-29 00:00-02:30", "2006-10-30 00:00-03:30"]),
    (
        "*/30 * * * *",
        ST_JOHNS,
        "2006-10-28 23:10-02:30",
        [
            "2006-10-28 23:30-02:30",
            "2006-10-29 00:00-02:30",
            "2006-10-28 23:30-03:30",
            "2006-10-29 00:00-03:30",
            "2006-10-29 00:30-03:30",
        ],
    ),
    ("30 23 * * *", CASEY, "2010-03-04 12:00", ["2010-03-04 23:30+11", "2010-03-05 23:30+08"]),
    ("0 1 * * *", CASEY, "2010-03-04 12:00", ["2010-03-05 01:00+11", "2010-03-06 01:00+08"]),
    (
        "0 */3 * * *",
        CASEY,
        "2010-03-04 20:00",
        ["2010-03-04 21:00+11", "2010-03-05 00:00+11", "2010-03-05 00:00+08", "2010-03-05 03:00+08"],
    ),
]

CLOCK_CHANGES = GAPS + FOLDS


@pytest.mark.parametrize(("expression", "zone", "after", "runs"), CLOCK_CHANGES)
def test_cron_runs_as_the_table_says_where_clocks_change(expression, zone, after, runs):
    assert runs_after(cron(expression, tz=zone).next_after, moment(zone, after), len(runs)) == runs


@pytest.mark.parametrize(("expression", "zone", "after", "runs"), CLOCK_CHANGES)
def test_the_reference_agrees_with_the_table(expression, zone, after, runs):
    found = runs_of(expression, zone, moment(zone, after), len(runs))
    assert [shown(instant(second).astimezone(load(zone))) for second in found] == runs


@pytest.mark.parametrize(("expression", "zone", "after", "runs"), CLOCK_CHANGES)
def test_cron_walks_back_over_the_same_runs(expression, zone, after, runs):
    trigger = cron(expression, tz=zone)
    beyond = trigger.next_after(moment(zone, runs[-1]))
    assert runs_after(trigger.previous_before, beyond, len(runs)) == runs[::-1]
    assert trigger.count_between(moment(zone, after), moment(zone, runs[-1])) == len(runs)


# expression, after, the next runs; all in UTC
SYNTAX = [
    # numbers, lists, ranges and steps
    ("5 4 * * *", "2026-01-01", ["2026-01-01 04:05", "2026-01-02 04:05"]),
    ("05 04 * * *", "2026-01-01", ["2026-01-01 04:05"]),
    ("*/20 * * * *", "2026-01-01", ["2026-01-01 00:20", "2026-01-01 00:40", "2026-01-01 01:00"]),
    ("5/20 * * * *", "2026-01-01", ["2026-01-01 00:05", "2026-01-01 00:25", "2026-01-01 00:45"]),
    ("10-50/15 * * * *", "2026-01-01", ["2026-01-01 00:10", "2026-01-01 00:25", "2026-01-01 00:40"]),
    ("*/40 * * * *", "2026-01-01", ["2026-01-01 00:40", "2026-01-01 01:00", "2026-01-01 01:40"]),
    ("*/59 5 * * *", "2026-01-01", ["2026-01-01 05:00", "2026-01-01 05:59"]),
    ("0 0 1,15 * *", "2026-01-01", ["2026-01-15 00:00", "2026-02-01 00:00"]),
    ("15,0 3 * * *", "2026-01-01", ["2026-01-01 03:00", "2026-01-01 03:15"]),
    ("  0\t12  *  * * ", "2026-01-01", ["2026-01-01 12:00"]),
    # wrapped ranges
    (
        "0 22-2 * * *",
        "2026-01-01 12:00",
        ["2026-01-01 22:00", "2026-01-01 23:00", "2026-01-02 00:00", "2026-01-02 01:00", "2026-01-02 02:00"],
    ),
    ("0 22-2/2 * * *", "2026-01-01 12:00", ["2026-01-01 22:00", "2026-01-02 00:00", "2026-01-02 02:00"]),
    ("50-10/10 0 * * *", "2026-01-01", ["2026-01-01 00:10", "2026-01-01 00:50", "2026-01-02 00:00"]),
    (
        "0 0 * * FRI-MON",
        "2026-01-01",
        ["2026-01-02 00:00", "2026-01-03 00:00", "2026-01-04 00:00", "2026-01-05 00:00", "2026-01-09 00:00"],
    ),
    ("0 0 * * 5-7", "2026-01-05", ["2026-01-09 00:00", "2026-01-10 00:00", "2026-01-11 00:00", "2026-01-16 00:00"]),
    ("0 0 * * SAT-SUN", "2026-01-05", ["2026-01-10 00:00", "2026-01-11 00:00", "2026-01-17 00:00"]),
    ("0 0 1 NOV-FEB *", "2026-01-15", ["2026-02-01 00:00", "2026-11-01 00:00", "2026-12-01 00:00", "2027-01-01 00:00"]),
    (
        "0 0 28-3 * *",
        "2026-02-02",
        ["2026-02-03 00:00", "2026-02-28 00:00", "2026-03-01 00:00", "2026-03-02 00:00", "2026-03-03 00:00"],
    ),
    (
        "0 0 28-3/2 * *",
        "2026-01-27",
        ["2026-01-28 00:00", "2026-01-30 00:00", "2026-02-01 00:00", "2026-02-03 00:00", "2026-02-28 00:00"],
    ),
    # names in any case
    ("0 9 * jan,JUL Mon", "2026-01-20", ["2026-01-26 09:00", "2026-07-06 09:00"]),
    ("0 9 * * mon-fri", "2026-01-02 12:00", ["2026-01-05 09:00", "2026-01-06 09:00"]),
    ("0 9 * * SUN", "2026-01-01", ["2026-01-04 09:00"]),
    ("0 9 * * 0", "2026-01-01", ["2026-01-04 09:00"]),
    ("0 9 * * 7", "2026-01-01", ["2026-01-04 09:00"]),
    ("0 9 * * 0-7", "2026-01-01", ["2026-01-01 09:00", "2026-01-02 09:00"]),
    # the question mark leaves the choice to the other day field
    ("0 12 ? * MON", "2026-01-01", ["2026-01-05 12:00", "2026-01-12 12:00"]),
    ("0 12 15 * ?", "2026-01-01", ["2026-01-15 12:00", "2026-02-15 12:00"]),
    ("0 30 9 ? * MON-FRI", "2026-01-02 12:00", ["2026-01-05 09:30", "2026-01-06 09:30"]),
    # the end of the month
    ("0 0 L * *", "2028-01-15", ["2028-01-31 00:00", "2028-02-29 00:00", "2028-03-31 00:00"]),
    ("0 0 l * *", "2026-02-15", ["2026-02-28 00:00"]),
    ("0 0 L-2 * *", "2026-01-15", ["2026-01-29 00:00", "2026-02-26 00:00", "2026-03-29 00:00"]),
    ("0 0 L-30 * *", "2026-01-15", ["2026-03-01 00:00", "2026-05-01 00:00", "2026-07-01 00:00"]),
    (
        "0 0 LW * *",
        "2026-01-15",
        ["2026-01-30 00:00", "2026-02-27 00:00", "2026-03-31 00:00", "2026-04-30 00:00", "2026-05-29 00:00"],
    ),
    # the working day nearest to a date, within its month
    ("0 0 15W * *", "2026-01-20", ["2026-02-16 00:00", "2026-03-16 00:00", "2026-04-15 00:00"]),
    ("0 0 15W 8 *", "2026-01-20", ["2026-08-14 00:00"]),
    ("0 0 1W * *", "2026-01-20", ["2026-02-02 00:00", "2026-03-02 00:00", "2026-04-01 00:00"]),
    ("0 0 1W 8 *", "2026-01-20", ["2026-08-03 00:00"]),
    ("0 0 31W * *", "2026-01-20", ["2026-01-30 00:00", "2026-03-31 00:00", "2026-05-29 00:00", "2026-07-31 00:00"]),
    ("0 0 29W 2 *", "2026-01-20", ["2028-02-29 00:00", "2032-02-27 00:00"]),
    # the nth and the last weekday
    ("0 0 * * MON#1", "2026-01-01", ["2026-01-05 00:00", "2026-02-02 00:00", "2026-03-02 00:00"]),
    ("0 0 * * 1#1", "2026-01-01", ["2026-01-05 00:00"]),
    ("0 0 * * FRI#5", "2026-01-01", ["2026-01-30 00:00", "2026-05-29 00:00", "2026-07-31 00:00"]),
    ("0 0 * * FRIL", "2026-01-01", ["2026-01-30 00:00", "2026-02-27 00:00", "2026-03-27 00:00"]),
    ("0 0 * * 5L", "2026-01-01", ["2026-01-30 00:00", "2026-02-27 00:00"]),
    ("0 0 * * 0L", "2026-01-01", ["2026-01-25 00:00"]),
    ("0 0 * * 7L", "2026-01-01", ["2026-01-25 00:00"]),
    ("0 0 * * sunl", "2026-01-01", ["2026-01-25 00:00"]),
    ("0 0 * * 7#2", "2026-01-01", ["2026-01-11 00:00"]),
    # lists may mix them
    ("0 0 1,15W,L * *", "2026-01-31", ["2026-02-01 00:00", "2026-02-16 00:00", "2026-02-28 00:00"]),
    ("0 0 * * MON#1,FRIL", "2026-01-01", ["2026-01-05 00:00", "2026-01-30 00:00", "2026-02-02 00:00"]),
    ("0 0 1-3,L-1,LW * *", "2026-02-03", ["2026-02-27 00:00", "2026-03-01 00:00"]),
    # two restricted day fields: either; a star in one of them: both
    ("0 0 13 * FRI", "2026-04-01", ["2026-04-03 00:00", "2026-04-10 00:00", "2026-04-13 00:00", "2026-04-17 00:00"]),
    ("0 0 15 * MON#1", "2026-01-01", ["2026-01-05 00:00", "2026-01-15 00:00", "2026-02-02 00:00", "2026-02-15 00:00"]),
    ("0 0 */2 * MON", "2026-01-01", ["2026-01-05 00:00", "2026-01-19 00:00", "2026-02-09 00:00", "2026-02-23 00:00"]),
    ("0 0 13 * */5", "2026-02-01", ["2026-02-13 00:00", "2026-03-13 00:00", "2026-09-13 00:00", "2026-11-13 00:00"]),
    ("0 0 1-31 * MON", "2026-01-05", ["2026-01-06 00:00", "2026-01-07 00:00"]),
    # seconds come first
    ("30 0 12 * * *", "2026-01-01", ["2026-01-01 12:00:30", "2026-01-02 12:00:30"]),
    ("*/30 0 12 * * *", "2026-01-01", ["2026-01-01 12:00", "2026-01-01 12:00:30", "2026-01-02 12:00"]),
    ("0 0 12 * * 2", "2026-01-01", ["2026-01-06 12:00"]),
    # seven fields are Quartz's: SUN is 1, the year is last
    ("0 0 12 ? * 2 *", "2026-01-01", ["2026-01-05 12:00", "2026-01-12 12:00"]),
    ("0 0 12 ? * 1 *", "2026-01-01", ["2026-01-04 12:00"]),
    ("0 0 12 ? * 7 *", "2026-01-01", ["2026-01-03 12:00"]),
    ("0 0 12 ? * 6L *", "2026-01-01", ["2026-01-30 12:00"]),
    ("0 0 12 ? * 3#2 *", "2026-01-01", ["2026-01-13 12:00"]),
    ("0 0 12 * * * *", "2026-01-01", ["2026-01-01 12:00", "2026-01-02 12:00"]),
    ("0 0 12 1 1 ? 2027-2029", "2026-01-01", ["2027-01-01 12:00", "2028-01-01 12:00", "2029-01-01 12:00", None]),
    ("0 0 12 1 1 ? 2027,2030", "2026-01-01", ["2027-01-01 12:00", "2030-01-01 12:00", None]),
    ("0 0 12 1 1 ? 2026/50", "2026-02-01", ["2076-01-01 12:00", "2126-01-01 12:00", "2176-01-01 12:00", None]),
    ("0 0 0 29 2 ? 2099-2110", "2026-01-01", ["2104-02-29 00:00", "2108-02-29 00:00", None]),
    ("0 0 12 1 1 ? 1999", "2026-01-01", [None]),
    # rare dates
    ("0 0 29 2 *", "2096-03-01", ["2104-02-29 00:00"]),
    ("0 0 * 2 MON#5", "2026-01-01", ["2044-02-29 00:00", "2072-02-29 00:00"]),
    # macros
    ("@hourly", "2026-01-01 00:30", ["2026-01-01 01:00", "2026-01-01 02:00"]),
    ("@daily", "2026-01-01", ["2026-01-02 00:00", "2026-01-03 00:00"]),
    ("@midnight", "2026-01-01", ["2026-01-02 00:00", "2026-01-03 00:00"]),
    ("@weekly", "2026-01-01", ["2026-01-04 00:00", "2026-01-11 00:00"]),
    ("@monthly", "2026-01-01", ["2026-02-01 00:00", "2026-03-01 00:00"]),
    ("@yearly", "2026-01-01", ["2027-01-01 00:00", "2028-01-01 00:00"]),
    ("@annually", "2026-01-01", ["2027-01-01 00:00", "2028-01-01 00:00"]),
    ("@Daily", "2026-01-01", ["2026-01-02 00:00"]),
    ("@HOURLY", "2026-01-01", ["2026-01-01 01:00"]),
]


@pytest.mark.parametrize(("expression", "after", "runs"), SYNTAX)
def test_cron_reads_the_syntax_as_the_table_says(expression, after, runs):
    expected = [run and f"{run}+00" for run in runs]
    assert runs_after(cron(expression, tz="UTC").next_after, moment("UTC", after), len(runs)) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 * * 7/2",
        "0 0 * * 7-0",
        "0 0 * * 0-7/2",
        "0 0 * * 1-7/3",
        "0 0 * * 5-7",
        "0 0 * * 7-7",
        "0 0 * * 6/1",
        "0 0 * * 7L,7#1",
    ],
)
def test_both_numbers_of_sunday_read_back_from_the_text_form(expression):
    trigger = cron(expression, tz="UTC")
    again = trigger_from_text(str(trigger))
    assert str(again) == str(trigger)
    after = moment("UTC", "2026-01-01")
    assert again.next_runs(9, after=after) == trigger.next_runs(9, after=after)


def test_0_slash_1_is_every_second_of_the_hour_after_midnight():
    trigger = cron("0/1 * 0 ? * * *", tz="UTC")
    runs = trigger.next_runs(3602, after=moment("UTC", "2026-01-01 12:00"))
    assert shown(runs[0]) == "2026-01-02 00:00+00"
    assert shown(runs[3599]) == "2026-01-02 00:59:59+00"
    assert [shown(run) for run in runs[3600:]] == ["2026-01-03 00:00+00", "2026-01-03 00:00:01+00"]


@pytest.mark.parametrize(
    ("expression", "dialect", "first"),
    [
        ("0 30 9 ? * 2", "quartz", "2026-01-05 09:30+00"),
        ("0 30 9 ? * 2", "unix", "2026-01-06 09:30+00"),
        ("0 30 9 * * 2", None, "2026-01-06 09:30+00"),
        ("0 30 9 ? * 2 *", None, "2026-01-05 09:30+00"),
        ("0 30 9 ? * 2 *", "unix", "2026-01-06 09:30+00"),
        ("0 30 9 1 * 2 *", "unix", "2026-01-01 09:30+00"),
        ("30 9 * * 0", "unix", "2026-01-04 09:30+00"),
    ],
)
def test_the_dialect_decides_what_a_weekday_number_means(expression, dialect, first):
    trigger = cron(expression, tz="UTC", dialect=dialect)
    assert shown(trigger.next_after(moment("UTC", "2026-01-01"))) == first


@pytest.mark.parametrize("prefix", ["CRON_TZ", "TZ"])
def test_a_zone_may_stand_in_front_of_the_expression(prefix):
    trigger = cron(f"{prefix}=Asia/Tokyo 0 9 * * *")
    assert trigger.tz == "Asia/Tokyo"
    assert trigger == cron("0 9 * * *", tz="Asia/Tokyo")
    assert shown(trigger.next_after(moment("UTC", "2026-01-01"))) == "2026-01-02 09:00+09"


def test_a_zone_in_front_may_repeat_the_one_given():
    assert cron("CRON_TZ=Asia/Tokyo 0 9 * * *", tz="Asia/Tokyo").tz == "Asia/Tokyo"


def test_a_zone_in_front_that_contradicts_the_one_given_is_refused():
    with pytest.raises(BadTrigger):
        cron("CRON_TZ=Asia/Tokyo 0 9 * * *", tz="Europe/Paris")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "europe/nowhere", "A" * 300])
def test_a_zone_that_tzdata_does_not_have_is_refused(zone):
    with pytest.raises(UnknownZone):
        cron("0 9 * * *", tz=zone)


def test_a_zone_in_front_that_tzdata_does_not_have_is_refused():
    with pytest.raises(UnknownZone):
        cron("CRON_TZ=Mars/Olympus 0 9 * * *")


def test_a_zone_object_is_as_good_as_its_name():
    assert cron("0 9 * * *", tz=ZoneInfo("Asia/Tokyo")) == cron("0 9 * * *", tz="Asia/Tokyo")


def test_runs_carry_the_zone_of_the_trigger():
    run = cron("0 9 * * *", tz=NY).next_after(datetime(2026, 1, 1, tzinfo=UTC))
    assert str(run.tzinfo) == NY


def test_cron_without_a_zone_is_utc_until_it_is_bound():
    trigger = cron("0 9 * * *")
    assert trigger.tz is None
    assert shown(trigger.next_after(moment("UTC", "2026-01-01"))) == "2026-01-01 09:00+00"
    assert trigger.bound(tz=NY) == cron("0 9 * * *", tz=NY)
    assert trigger.bound(tz=NY).bound(tz=LONDON).tz == NY


@pytest.mark.parametrize("text", ["@every 1h30m", "@EVERY 1h30m", "@Every 1h30m"])
def test_the_every_macro_is_every(text):
    assert cron(text) == every("1h30m")


def test_the_every_macro_counts_from_the_epoch_until_it_is_bound():
    trigger = cron("@every 90m")
    assert shown(trigger.next_after(datetime(1970, 1, 1, tzinfo=UTC))) == "1970-01-01 01:30+00"
    start = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
    assert shown(trigger.bound(start=start).next_after(start)) == "2026-01-01 01:40+00"


@pytest.mark.parametrize("fraction", [1, 500_000, 999_999])
def test_fractions_of_a_second_lie_between_runs(fraction):
    trigger = cron("0 12 * * *", tz="UTC")
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    later = noon + timedelta(microseconds=fraction)
    assert trigger.next_after(noon - timedelta(microseconds=fraction)) == noon
    assert trigger.next_after(later) == noon + timedelta(days=1)
    assert trigger.previous_before(later) == noon
    assert trigger.previous_before(noon) == noon - timedelta(days=1)
    assert trigger.count_between(noon - timedelta(microseconds=fraction), later) == 1
    assert trigger.count_between(noon, later) == 0


@pytest.mark.parametrize("method", ["next_after", "previous_before"])
def test_a_naive_datetime_is_refused(method):
    with pytest.raises(NaiveDatetime):
        getattr(cron("0 9 * * *", tz="UTC"), method)(datetime(2026, 1, 1))


# expression, the whole message
MESSAGES = [
    ("60 * * * *", "minute field '60': 60 is out of range 0-59"),
    ("* * * * 8", "day-of-week field '8': 8 is out of range 0-7 (0 and 7 are Sunday)"),
    (
        "0 0 12 ? * 0 *",
        "day-of-week field '0': 0 is out of range; Quartz counts 1-7 with SUN=1 (or use SUN-SAT)",
    ),
    (
        "0 0 1 JANUARY *",
        "month field 'JANUARY': 'JANUARY' is not a number; months are 1-12 or JAN-DEC (three letters)",
    ),
    ("*/0 * * * *", "minute field '*/0': step '0' must be a whole number from 1"),
    (
        "*/90 * * * *",
        (
            "minute field '*/90': step 90 is larger than the field (0-59), so only one value would ever match;"
            " for a fixed interval use '@every'"
        ),
    ),
    ("1,,2 * * * *", "minute field '1,,2': empty item (two commas, or a comma at the end)"),
    ("1-5-9 * * * *", "minute field '1-5-9': '1-5-9' has more than one '-'"),
    ("? * * * *", "minute field '?': '?' is only allowed alone in day-of-month or day-of-week"),
    ("0 0 1-5W * *", "day-of-month field '1-5W': 'W' needs a single day before it (15W) or LW"),
    ("0 0 * * 2#6", "day-of-week field '2#6': '#6': the occurrence must be 1-5"),
    ("0 0 * * L", "day-of-week field 'L': 'L' alone is ambiguous here; write 'SAT', or e.g. 'FRIL'"),
    (
        "* * * *",
        (
            "expected 5 fields (minute hour day-of-month month day-of-week), 6 (seconds first) or 7 (Quartz:"
            " seconds first, year last), got 4"
        ),
    ),
    ("@reboot", "'@reboot' is not a time; use a start-up hook"),
    (
        "0 0 30 2 *",
        "this schedule can never fire: no date satisfies day-of-month '30', day-of-week '*' and the month fields",
    ),
]


@pytest.mark.parametrize(("expression", "message"), MESSAGES)
def test_a_refusal_says_which_field_what_text_and_why(expression, message):
    with pytest.raises(BadTrigger) as refusal:
        cron(expression)
    assert str(refusal.value) == message


# expression, how the message begins, what else it says
LONG_MESSAGES = [
    (
        "0 30 9 ? * 2",
        (
            "day-of-week field '2': with 6 fields and '?' this number means one day in Quartz (SUN=1) and another"
            " in Unix cron (SUN=0); write a name such as MON, or give dialect="
        ),
        "",
    ),
    (
        "0 12 * * * 2027",
        "6 fields are 'second minute hour ",
        "but the last one, '2027', looks like a year; add a seconds field in front: '0 0 12 * * * 2027'",
    ),
    ("0 0 12 1 * 1 *", "a 7-field (Quartz) expression needs '?' in exactly one of ", ""),
    ("0 0 12 ? * ? *", "a 7-field (Quartz) expression needs '?' in exactly one of ", ""),
    ("0 0 12 * * MON *", "a 7-field (Quartz) expression needs '?' in exactly one of ", ""),
    ("* * * * * * * *", "expected 5 fields ", "got 8"),
    ("0 0 31 2,4,6,9,11 *", "this schedule can never fire: no date satisfies day-of-month '31'", ""),
    ("0 0 0 29 2 ? 2026", "this schedule can never fire", ""),
    ("0 0 LW * */6", "this schedule can never fire", "'*/6'"),
    ("0 0 * FEBR *", "month field 'FEBR': 'FEBR' is not a number", "JAN-DEC"),
    ("0 24 * * *", "hour field '24': 24 is out of range 0-23", ""),
    ("0 0 0 * *", "day-of-month field '0': 0 is out of range 1-31", ""),
    ("0 0 * 13 *", "month field '13': 13 is out of range 1-12", ""),
    ("60 0 0 * * *", "second field '60': 60 is out of range 0-59", ""),
    ("0 0 0 * * ? 2200", "year field '2200': 2200 is out of range 1970-2199", ""),
]


@pytest.mark.parametrize(("expression", "beginning", "part"), LONG_MESSAGES)
def test_a_longer_refusal_begins_with_the_reason(expression, beginning, part):
    with pytest.raises(BadTrigger) as refusal:
        cron(expression)
    assert str(refusal.value).startswith(beginning)
    assert part in str(refusal.value)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "   ",
        "*",
        "@never",
        "@",
        "@every",
        "@every 0s",
        "@every -1h",
        "@every tomorrow",
        "@daily 5",
        "5- * * * *",
        "-5 * * * *",
        "/5 * * * *",
        "*/ * * * *",
        "*/-1 * * * *",
        "*/1.5 * * * *",
        "1/2/3 * * * *",
        "** * * * *",
        "*5 * * * *",
        "5* * * * *",
        "+5 * * * *",
        "5_0 * * * *",
        "0x5 * * * *",
        "1e1 * * * *",
        "1, * * * *",
        ",1 * * * *",
        ", * * * *",
        "MON * * * *",
        "1-60 * * * *",
        "٣ * * * *",
        "³ * * * *",
        "00005 * * * *",
        "0 */24 * * *",
        "0 0 32 * *",
        "0 0 0W * *",
        "0 0 32W * *",
        "0 0 W * *",
        "0 0 WL * *",
        "0 0 L-0 * *",
        "0 0 L-31 * *",
        "0 0 L- * *",
        "0 0 L-3W * *",
        "0 0 L/2 * *",
        "0 0 1,? * *",
        "0 0 ?/2 * *",
        "0 0 1#2 * *",
        "0 0 * L *",
        "0 0 * 1W *",
        "0 0 * ? *",
        "0 0 * 0 *",
        "0 0 * * MONDAY",
        "0 0 * * MO",
        "0 0 * * MON#0",
        "0 0 * * MON#",
        "0 0 * * #1",
        "0 0 * * MON-FRI#1",
        "0 0 * * MON-FRIL",
        "0 0 * * MON#1#2",
        "0 0 * * 1W",
        "0 0 * * LW",
        "0 0 * * 8L",
        "0 0 0 ? * MON 2030-2020",
        "0 0 0 ? * MON 1969",
        "0 0 0 ? * MON 20300",
        "0 0 0 ? * MON ?",
        "0 0 0 ? * 8 *",
        "0 0 30 FEB *",
        "0 0 31 APR *",
        "0 0 30W 2 *",
        "0 0 L-29 2 *",
        "0 30 9 ? * 1-5",
        "0 30 9 ? * MON,3",
        "CRON_TZ=UTC",
        "CRON_TZ= 0 0 * * *",
        "FOO=bar 0 0 * * *",
        "* " * 200,
        "0," * 200 + "0 * * * *",
    ],
)
def test_cron_refuses_what_it_cannot_understand(expression):
    with pytest.raises(BadCron if not expression.startswith(("@every", "CRON_TZ=")) else BadTrigger):
        cron(expression)


@pytest.mark.parametrize("dialect", ["Quartz", "cron", "", "aws"])
def test_a_dialect_that_does_not_exist_is_refused(dialect):
    with pytest.raises(BadTrigger):
        cron("0 0 * * *", dialect=dialect)


def test_a_refusal_of_one_field_carries_its_parts():
    with pytest.raises(BadCronField) as refusal:
        cron("0 0 * * 8")
    assert refusal.value.field == "day-of-week"
    assert refusal.value.text == "8"
    assert refusal.value.reason.startswith("8 is out of range 0-7")


def test_every_refusal_is_a_value_error():
    with pytest.raises(ValueError, match="60 is out of range"):
        cron("60 * * * *")
