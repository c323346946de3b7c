"""Crontab lines: what is read, what becomes a schedule, and when both systems run it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from rota.importers.cron_rules import runs_of_cron
from rota.importers.crontab import code_of, crontab_items, read_crontab
from rota.importers.found import Tasks
from rota.importers.machine_zone import machine_zone
from rota.model.jobs.payload import unpack_call
from rota.tasks.task import Registry
from rota.triggers import cron

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)


def items_of(text: str, *, is_system: bool = False, task: str | None = "shell", tz: str = "UTC"):
    lines = read_crontab(text, is_system=is_system)
    return crontab_items(lines, Tasks(Registry()), tz=tz, task=task, module="commands", prefix="", now=NOW)


def call_of(item):
    return unpack_call(item.spec.payload.encode())


def test_settings_hold_from_their_line_on():
    first, second = read_crontab('* * * * * a\nPATH=/bin\n"MY VAR" = "x y"\n\n# no\n* * * * * b\n')
    assert first.env == {}
    assert second.env == {"PATH": "/bin", "MY VAR": "x y"}


def test_what_stands_behind_a_percent_sign_is_the_input():
    (item,) = items_of(r"0 0 * * * mail -s 50\% ann%hello%world")
    assert call_of(item).args == ["mail -s 50% ann"]
    assert call_of(item).kwargs == {"stdin": "hello\nworld"}


def test_the_shell_and_the_environment_reach_the_task_and_what_cron_reads_does_not():
    (item,) = items_of("SHELL=/bin/bash\nMAILTO=ann\nCRON_TZ=Asia/Tokyo\nA=1\n0 9 * * * x")
    assert call_of(item).kwargs == {"env": {"A": "1"}, "shell": "/bin/bash"}
    assert item.spec.tz == "Asia/Tokyo"
    assert any("not mailed to ann" in warning for warning in item.warnings)


def test_tz_is_the_commands_and_not_the_times():
    (item,) = items_of("TZ=Asia/Tokyo\n0 9 * * * x", tz="Europe/Paris")
    assert item.spec.tz == "Europe/Paris"
    assert "the times of the line are in Europe/Paris" in item.warnings[0]


def test_a_system_crontab_names_a_user():
    (item,) = items_of("17 * * * * root cd / && run-parts /etc/cron.hourly", is_system=True)
    assert call_of(item).args == ["cd / && run-parts /etc/cron.hourly"]
    assert "as user 'root'" in item.warnings[0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("@reboot x", "@reboot names no time"),
        ("0 9 * * mon", "too few fields"),
        ("61 * * * * x", "61 is out of range"),
        ("0~30 * * * * x", "0~30"),
    ],
)
def test_what_cannot_be_said_is_named_with_its_reason(line, reason):
    (item,) = items_of(line)
    assert item.spec is None
    assert reason in item.reason


@pytest.mark.parametrize("macro", ["@hourly", "@Daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"])
def test_macros_run_when_cron_runs_them(macro):
    (item,) = items_of(f"{macro} x")
    assert list(item.old_runs) == cron(macro, tz="UTC").next_runs(3, after=NOW)


def test_runs_overlap_and_missed_ones_stay_missed_as_in_cron():
    (item,) = items_of("0 9 * * * x")
    assert (item.spec.overlap, item.spec.catchup) == ("allow", "skip")


def test_ids_come_from_the_commands_and_equal_ones_are_counted():
    text = "0 9 * * * /usr/bin/backup.sh --all > /dev/null 2>&1\n0 17 * * * backup.sh --all | mail\n@daily ''\n"
    assert [item.id for item in items_of(text)] == ["backup-sh-all", "backup-sh-all-2", "schedule"]


def test_the_code_runs_the_command_as_cron_does(tmp_path, monkeypatch, capsys):
    lines = read_crontab("A=1\n0 9 * * * cat; echo $A 9%hello\n0 9 * * * exit 3\n@reboot no")
    items = crontab_items(lines, Tasks(Registry()), tz="UTC", task=None, module="ran", prefix="", now=NOW)
    (tmp_path / "ran.py").write_text(code_of(items, lines, "tab"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    import ran  # noqa: PLC0415

    monkeypatch.delitem(sys.modules, "ran")
    assert [item.spec.task for item in items if item.spec] == [ran.cat.name, ran.exit_3.name]
    ran.cat()
    assert capsys.readouterr().out == "hello1 9\n"
    with pytest.raises(Exception, match="exit status 3"):
        ran.exit_3()


PLAIN = st.tuples(
    st.sampled_from(["0", "30", "*/15", "5,35", "10-20", "*"]),
    st.sampled_from(["0", "2", "*/6", "9-17", "*", "1,2,3"]),
    st.sampled_from(["*", "1", "13", "*/10", "1-7", "29"]),
    st.sampled_from(["*", "2", "jan-mar", "*/3"]),
    st.sampled_from(["*", "0", "7", "fri", "mon-fri", "1,3"]),
).map(" ".join)


@given(expression=PLAIN, hours=st.integers(0, 24 * 400))
def test_the_walk_by_crons_rules_agrees_with_a_second_library(expression, hours):
    after = NOW + timedelta(hours=hours)
    ours = runs_of_cron(expression, "UTC", after)
    theirs = croniter(expression, after, implement_cron_bug=True)
    assert list(ours) == [theirs.get_next(datetime) for _ in range(3)]


@pytest.mark.parametrize(
    ("expression", "after"),
    [
        ("30 2 * * *", datetime(2026, 3, 7, 12, tzinfo=UTC)),
        ("15 * * * *", datetime(2026, 3, 8, 5, tzinfo=UTC)),
        ("*/30 * * * *", datetime(2026, 11, 1, 4, tzinfo=UTC)),
        ("30 1 * * *", datetime(2026, 10, 31, 12, tzinfo=UTC)),
    ],
)
def test_both_rules_agree_where_clocks_change(expression, after):
    zone = "America/New_York"
    assert list(runs_of_cron(expression, zone, after)) == cron(expression, tz=zone).next_runs(3, after=after)


def test_the_machines_zone_is_found(tmp_path, monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    assert machine_zone(tmp_path) == "UTC"
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert machine_zone(tmp_path) == "Asia/Tokyo"
    (tmp_path / "timezone").write_text("Europe/Paris\n")
    assert machine_zone(tmp_path) == "Europe/Paris"
    monkeypatch.setenv("TZ", ":Africa/Cairo")
    assert machine_zone(tmp_path) == "Africa/Cairo"
    assert ZoneInfo(machine_zone())
