"""How lateness is summed up, and what counts as drift."""

import importlib
import sys
from pathlib import Path

import pytest
from bench.punctual_suite import figures_of, no_drift, percentile

PEERS = Path(__file__).parents[2] / "bench" / "peers"


@pytest.mark.parametrize(("share", "number"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_one_of_the_numbers(share, number):
    assert percentile(list(range(100, 0, -1)), share) == number


def test_any_drift_at_all_is_missed():
    assert no_drift("drift", [0.0, 1e-6]).missed
    assert not no_drift("drift", [0.0, 0.0]).missed


def test_lateness_counts_all_runs_of_all_rounds():
    rounds = [{"late": [0.001, 0.001, 0.003], "drift": 0.0}, {"late": [0.001, 0.001, 0.030], "drift": 0.0}]
    half, worst, drift = figures_of("sqlite", rounds)
    assert (half.ours, half.missed) == (1.0, False)
    assert (worst.ours, worst.missed) == (30.0, True)
    assert not drift.missed


def test_times_on_a_grid_of_seconds_do_not_stray(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(PEERS), *sys.path])
    stray = importlib.import_module("punctual").stray
    assert stray([5.0, 6.0, 7.0]) == 0
    assert stray([5.0, 6.0, 7.5, 8.0]) == 0.5
