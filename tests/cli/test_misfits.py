"""Jobs and schedules that wait with arguments which the code no longer takes: doctor and plan name them."""

from __future__ import annotations

import json

import pytest

from cli.conftest import JOBS

OLD = """

@app.task
def pay(amount: int, password: str = ""): ...
"""
NEW = """

@app.task
def pay(amount: int, currency: str, password: int = 0): ...
"""
SECRET = "c4nary"  # noqa: S105 - planted


@pytest.fixture
def deployed(rota, folder):
    """A project whose task had another signature when its jobs were sent."""
    (folder / "jobs.py").write_text(JOBS + OLD)
    rota.sync()
    ids = [rota.enqueue("pay", str(number)) for number in range(3)]
    rota("schedules", "add", "nightly", "pay", "1", f"password={SECRET}", "--every", "1h", "--app", "jobs.py")
    rota.forget()
    assert "the code takes those of all waiting jobs" in rota("doctor", "--app", "jobs.py", code=1).stdout
    rota.forget()
    (folder / "jobs.py").write_text(JOBS + NEW)
    rota.ids = ids
    return rota


def test_doctor_names_the_task_how_many_one_of_them_and_what_does_not_fit(deployed):
    said = deployed("doctor", "--app", "jobs.py", code=1).stdout
    assert (
        f"3 waiting jobs do not fit jobs.pay, such as {deployed.ids[-1]}: jobs.pay(amount: int, currency: str" in said
    )
    assert "missing a required argument: 'currency'" in said
    assert "1 schedule does not fit jobs.pay, nightly: " in said
    assert SECRET not in said
    deployed.forget()
    found = json.loads(deployed("doctor", "--app", "jobs.py", "-o", "json", code=1).stdout)
    assert sum("not fit" in check["finding"] for check in found) == 2


def todo(rota) -> str:
    """What doctor says is to be done about the jobs that do not fit."""
    rota.forget()
    found = json.loads(rota("doctor", "--app", "jobs.py", "-o", "json", code=1).stdout)
    return next((one["todo"] for one in found if "waiting job" in one["finding"] and "not fit" in one["finding"]), "")


def test_doctor_has_those_cancelled_that_do_not_fit_and_no_other(deployed, monkeypatch):
    healthy = deployed.enqueue("pay", "1", "EUR")
    monkeypatch.setattr("rota.cli.misfits.MOST_NAMED", 2)
    said = todo(deployed)
    assert "then run doctor again for the other 1" in said
    while said:
        command = said.partition("`rota ")[2].partition("`")[0]
        assert set(command.split()[2:]) < set(deployed.ids)
        deployed(*command.split(), "--store", "sqlite:///.rota/rota.db")
        said = todo(deployed)
    states = {one["id"]: one["state"] for one in deployed.data("jobs", "list", "--store", "sqlite:///.rota/rota.db")}
    assert states == {**dict.fromkeys(deployed.ids, "cancelled"), healthy: "queued"}


def test_a_doctor_who_knows_no_code_says_nothing_of_it(deployed):
    assert "fit" not in deployed("doctor", "--store", "sqlite:///.rota/rota.db", code=1).stdout


def test_plan_names_them_too(deployed):
    said = deployed("schedules", "plan", "--app", "jobs.py").stdout
    assert "arguments that the code does not take\n! 3 waiting jobs do not fit jobs.pay" in said
    assert "! 1 schedule does not fit jobs.pay, nightly" in said
    deployed.forget()
    found = deployed.data("schedules", "plan", "--app", "jobs.py")
    assert [(one["kind"], one["what"], one["id"]) for one in found] == [
        ("unfit", "job", deployed.ids[-1]),
        ("unfit", "schedule", "nightly"),
    ]


def test_only_so_many_are_looked_at_and_that_is_said(deployed, monkeypatch):
    monkeypatch.setattr("rota.cli.misfits.MOST_JOBS", 2)
    said = deployed("doctor", "--app", "jobs.py", code=1).stdout
    assert "2 waiting jobs (of the newest 2) do not fit jobs.pay" in said
