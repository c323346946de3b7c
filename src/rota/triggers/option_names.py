"""Maps keywords of triggers in other schedulers to their names in Rota, or to advice."""

from __future__ import annotations

_SPAN = "write the span as text, as in every('90s') or every('1h30m')"

FOR_TRIGGERS = {
    **{unit: f"{unit}s" for unit in ("day", "week", "month", "quarter", "year")},
    **dict.fromkeys(("seconds", "second", "minutes", "minute", "hours", "hour", "interval", "period"), _SPAN),
    **dict.fromkeys(("timezone", "zone"), "tz"),
    **dict.fromkeys(("start_date", "start_time", "anchor"), "start"),
    **dict.fromkeys(("end_date", "end_time", "until"), "end"),
    **dict.fromkeys(("time", "at_time"), "at"),
    **dict.fromkeys(("weekday", "day_of_week", "dow"), "on"),
}
