"""What was made ahead is still to come, also if it is the last."""

from __future__ import annotations

from datetime import UTC, datetime

from rota import App, calendar, once
from rota.inspector.occurrences import coming_runs
from rota.model.micros import micros_of
from rota.testing import Kit, ManualClock

NOON = datetime(2090, 3, 1, 12, tzinfo=UTC)
THREE = datetime(2090, 3, 1, 15, tzinfo=UTC)
FOUR_EACH_DAY = [datetime(2090, 3, day, 16, tzinfo=UTC) for day in (1, 2)]


def test_the_last_runs_are_listed_until_they_have_come():
    app = App()

    @app.task
    def work() -> None: ...

    with Kit(app, ManualClock(NOON)) as kit:
        app.schedules.put("once", work.job(), once(THREE), lookahead="6h")
        app.schedules.put("twice", work.job(), calendar(days=1, at="16:00"), lookahead="2d", max_runs=2)
        kit.run_due()
        assert app.schedules.next_runs("once") == [THREE]
        assert app.schedules.next_runs("twice") == FOUR_EACH_DAY
        assert app.schedules.get("once").next_run == THREE
        records = [view.record for view in app.schedules.list().items]
        agenda = coming_runs(records, micros_of(NOON), micros_of(FOUR_EACH_DAY[-1]), 10)
        assert {coming.schedule_id: coming.runs for coming in agenda} == {"once": [THREE], "twice": FOUR_EACH_DAY}
        kit.travel("1d")
        assert app.schedules.next_runs("once") == []
        assert app.schedules.next_runs("twice") == FOUR_EACH_DAY[1:]
        app.schedules.pause("twice")
        assert app.schedules.next_runs("twice") == []
