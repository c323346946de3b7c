"""next: the sentence, the runs and the warnings."""

from __future__ import annotations

import csv
import io


def test_a_page_has_the_sentence_the_runs_and_the_warnings(rota):
    lines = rota("next", "30 2 * * *", "--tz", "America/New_York", "-n", "3").stdout.splitlines()
    assert lines[0] == "At 02:30 every day, America/New_York time"
    runs = lines[2:5]
    assert all(" 02:30 E" in run and "Z  in " in run for run in runs)
    assert lines[6].startswith("warning: ")
    assert "02:30 does not exist in America/New_York" in lines[6]


def test_in_utc_there_is_one_column_of_times(rota):
    line = rota("next", "0 12 * * *", "-n", "1").stdout.splitlines()[2]
    assert line.count("12:00") == 1
    assert "12:00:00Z" in line


def test_an_interval_counts_from_now(rota):
    assert "in 90 m" in rota("next", "@every 90m", "-n", "1").stdout


def test_a_rule_whose_time_is_over_says_so(rota):
    assert "no run lies ahead" in rota("next", "0 0 0 1 1 ? 2020").stdout


def test_other_forms(rota):
    facts = rota.data("next", "0 12 1 * 5", "-n", "2")
    assert facts["trigger"] == "cron 0 12 1 * FRI"
    assert [warning["kind"] for warning in facts["warnings"]] == ["day-or"]
    assert len(facts["runs"]) == 2
    rows = list(csv.DictReader(io.StringIO(rota("next", "0 12 1 * 5", "-n", "2", "-o", "csv").stdout)))
    assert [row["utc"] for row in rows] == [run["utc"] for run in facts["runs"]]


def test_what_cannot_be_read_says_why(rota):
    assert "error: expected 5 fields" in rota("next", "soon", code=2).stderr
    assert "unknown timezone 'Mars/X'" in rota("next", "* * * * *", "--tz", "Mars/X", code=2).stderr
    assert "dialect" in rota("next", "* * * * *", "--dialect", "vixie", code=2).stderr
