"""The figures of what people run: how a pace is counted, and what the README shows of it."""

from types import SimpleNamespace

import pytest
from bench import asrun, chart, table
from bench.asrun_suite import COURSES, OURS, QUICK_COUNTS, UNLOGGED, figures_of
from bench.measure import compare, within
from bench.results import AS_RUN, Result

SECOND = 1_000_000_000


def test_a_pace_counts_from_the_first_job_to_the_last():
    pace = asrun.pace_of([(5 * SECOND, SECOND), (9 * SECOND, 3 * SECOND)], 5)
    assert pace == {"seconds": 1.0, "cpu": 0.5}


def test_records_are_read_once_all_are_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asrun.RECORDS.write_bytes(asrun.RECORD.pack(1, 2) + asrun.RECORD.pack(3, 4))
    assert asrun.wait_for_records(2, SimpleNamespace(poll=lambda: None)) == [(1, 2), (3, 4)]


def test_a_worker_that_ends_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="ended with code 3"):
        asrun.wait_for_records(1, SimpleNamespace(poll=lambda: 3, returncode=3))


def test_every_store_has_a_peer_in_a_quick_run_and_a_column():
    assert AS_RUN.keys() == COURSES.keys()
    assert all(course.rivals(quick=True) for course in COURSES.values())
    assert COURSES["redis"].rivals(quick=False).keys() > COURSES["redis"].rivals(quick=True).keys()


def test_the_best_peer_is_the_one_to_beat_and_is_ranked_first(monkeypatch):
    paces = {OURS: 1.0, UNLOGGED: 0.9, "Huey": 30.0, "Dramatiq": 20.0, "Taskiq": 40.0, "Celery": 50.0}

    def trials(_kind, _scenario, rivals, _place, rounds, _count):
        assert set(paces) - {OURS, UNLOGGED} == set(rivals)
        return {name: [{"seconds": paces[name], "cpu": paces[name] / 1_000}] * rounds for name in paces}

    monkeypatch.setattr("bench.asrun_suite.trials", trials)
    figures = figures_of("redis", COURSES["redis"], ("redis://", lambda: None), 3, quick=True)
    result = Result({}, tuple(figures))
    assert list(result.versus("redis: drain")) == ["Dramatiq", "Huey", "Taskiq", "Celery"]
    assert [figure.must for figure in result.versus("redis: drain").values()] == [12, None, None, None]
    assert result.named("redis: drain, share of that without job lines").ratio == pytest.approx(0.9)
    assert set(QUICK_COUNTS) == {"drain", "single", "latency"}


def as_run() -> Result:
    figures = []
    for kind in AS_RUN:
        figures += [
            compare(f"{kind}: drain vs Huey", [25e-6], [300e-6]),
            compare(f"{kind}: drain, share of that without job lines", [25e-6], [23e-6], 0.85),
            within(f"{kind}: drain, worker CPU per 1,000 jobs", 0.015, [0.015], 0.02, "ms"),
            compare(f"{kind}: single enqueue vs Huey", [90e-6], [99e-6]),
            compare(f"{kind}: idle to running, p50 vs Huey", [1.2e-3], [1.8e-3]),
        ]
    facts = {"python": "3.11", "cores": 2, "rounds": 5, "server": "redis 6.2"}
    return Result(facts, tuple(figures))


def test_the_readme_shows_what_people_run_first():
    text = table.tables(as_run(), {})
    assert text.startswith("Every worker is started by its own command")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert rows[0][1:] == ["SQLite", "Redis", "PostgreSQL", "MongoDB replica set |"]
    assert rows[2][:2] == ["| drain", "40,000/s (12.0x Huey)"]
    assert rows[3][:2] == ["| … share of the drain without job lines", "92 %"]
    assert rows[4][:2] == ["| … worker CPU per 1,000 jobs", "15 ms"]
    assert rows[6][1] == "1.2 ms (1.5x Huey)"
    assert "Python 3.11, 2 cores, medians of 5 rounds. Servers on the same machine: redis 6.2." in text
    assert table.tables(None, {}) == ""


def test_the_chart_shows_what_people_run(tmp_path, monkeypatch):
    monkeypatch.setattr(chart.results, "read", lambda suite, _folder: as_run() if suite == "asrun" else None)
    assert [file.name for file in chart.write(tmp_path, tmp_path)] == ["drain.svg"]
    drawn = (tmp_path / "drain.svg").read_text()
    assert "started by its own command" in drawn
    assert "40,000" in drawn
    assert "MongoDB replica set" in drawn
