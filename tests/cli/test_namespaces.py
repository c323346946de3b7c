"""Reading from an empty namespace says which others there are."""

from __future__ import annotations


def test_a_namespace_without_anything_is_told_with_the_others(rota):
    rota.enqueue("greet", "ann")
    told = rota("jobs", "list", env={"ROTA_NAMESPACE": "prod"})
    assert told.stdout == ""
    assert "namespace prod has no jobs and no schedules. There is another namespace: rota." in told.stderr
    assert "There is another namespace" not in rota("jobs", "list").stderr
