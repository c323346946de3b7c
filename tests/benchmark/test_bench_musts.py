"""A must binds: who misses it is told at the end, and the command fails."""

import sys
from types import SimpleNamespace

import pytest
from bench import __main__ as command
from bench.measure import alone, compare, point, within


def test_a_ratio_below_its_must_is_missed():
    assert compare("drain", [2.0], [3.0], must=1.6).missed
    assert not compare("drain", [2.0], [3.0], must=1.5).missed
    assert not compare("drain", [2.0], [1.0]).missed


def test_a_limit_that_is_passed_is_missed():
    assert within("idle", 61.0, [61.0], 60.0, "MB").missed
    assert not within("idle", 60.0, [60.0], 60.0, "MB").missed


def test_a_figure_alone_has_nothing_to_miss():
    assert not alone("tick", [1.0, 2.0, 3.0], "ms").missed


def test_a_point_knows_its_line():
    figure = point("redis: exchange", 1_000, [0.001, 0.003, 0.002], "us")
    assert (figure.series, figure.at, figure.ours) == ("redis: exchange", 1_000, 2_000)


@pytest.mark.parametrize(("must", "code"), [(2.0, 1), (1.0, 0), (None, 0)])
def test_the_command_fails_where_a_must_is_missed(must, code, monkeypatch, tmp_path, capsys):
    suite = SimpleNamespace(facts=dict, run=lambda _rounds, _quick: [compare("drain vs X", [2.0], [3.0], must)])
    monkeypatch.setattr(command, "import_module", lambda _: suite)
    monkeypatch.setattr(command.results, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "draw", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench", "--only", "redis"])
    assert command.main() == code
    assert ("MISSED: redis: drain vs X: 1.50x, must be 2.00x" in capsys.readouterr().err) is bool(code)
    assert (tmp_path / "redis.json").exists()
