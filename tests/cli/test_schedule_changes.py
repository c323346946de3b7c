"""schedules changes, and what add and edit can say of tenants, look-ahead and days."""

from __future__ import annotations

import pytest

from rota.operations.audit import whoami


@pytest.fixture(autouse=True)
def _app_is_known(folder, monkeypatch):  # noqa: ARG001 - which forgets what the environment says
    monkeypatch.setenv("ROTA_APP", "jobs.py")


@pytest.fixture
def hello(rota):
    """Two tenants, and a schedule of neither."""
    rota("migrate")
    rota("tenants", "put", "acme", "--tz", "Asia/Kolkata", "--queue", "mail")
    rota("tenants", "put", "beta", "--tz", "America/New_York", "--priority", "5")
    rota("schedules", "add", "hello", "greet", "ann", "--calendar", "days=1 at=00:05", "--by", "ann")
    return rota


def facts(rota):
    return next(one for one in rota.data("schedules", "list") if one["id"] == "hello")


def edit(rota, *words: str):
    return rota("schedules", "edit", "hello", *words)


def test_every_verb_is_kept_with_who_made_it(hello):
    for verb in ("pause", "resume", "disable", "enable", "run-now"):
        hello("schedules", verb, "hello", "--by", verb)
    edit(hello, "--cron", "0 9 * * *", "--by", "bob")
    hello("schedules", "remove", "hello", "--by", "eve")
    assert [(one["verb"], one["by"]) for one in hello.data("schedules", "changes", "hello")] == [
        ("removed", "eve"),
        ("re-timed", "bob"),
        ("run by hand", "run-now"),
        ("enabled", "enable"),
        ("disabled", "disable"),
        ("resumed", "resume"),
        ("paused", "pause"),
        ("created", "ann"),
    ]


def test_changes_are_told_before_and_after(hello):
    edit(hello, "--jitter", "30s", "--queue", "bulk", "--lookahead", "6h")
    text = hello("schedules", "changes", "hello").stdout
    first, *rest = text.splitlines()
    assert first.endswith(f")  re-timed by {whoami()}")
    assert rest[:3] == ["  queue: default → bulk", "  jitter: none → 30s", "  lookahead: none → 6h"]
    assert "  arguments: ('ann')" in rest
    shown = hello("schedules", "show", "hello").stdout
    assert "look-ahead  jobs are made 6h before they are due" in shown
    assert "    jitter: none → 30s\n" in shown.partition("last changes\n")[2]


def test_without_an_id_everything_is_told_and_a_limit_holds(hello):
    everything = hello.data("schedules", "changes")
    assert [(one["kind"], one["name"]) for one in everything] == [
        ("schedule", "hello"),
        ("tenant", "beta"),
        ("tenant", "acme"),
    ]
    limited = hello("schedules", "changes", "--limit", "1")
    assert "schedule hello: created by ann" in limited.stdout
    assert limited.stderr == "the newest 1; --limit shows more\n"
    assert hello("schedules", "changes", "-o", "csv").stdout.startswith("id,at,by,verb,kind,name")


def test_a_limit_above_a_page_reads_on(hello, store):
    from rota import App  # noqa: PLC0415 - the fixture of that name is the command

    app = App(f"sqlite:///{store.path}")
    for number in range(210):
        app.tenants.put("acme", tz="UTC", description=str(number))
    app.close()
    assert len(hello.data("schedules", "changes", "--limit", "208")) == 208


def test_changes_of_what_never_was_are_not_found(hello):
    assert "no change of one is kept" in hello("schedules", "changes", "nope", code=5).stderr


def test_who_joins_a_tenant_follows_it_in_what_is_not_said(hello):
    edit(hello, "--tenant", "acme", "--priority", "7")
    assert [facts(hello)[name] for name in ("tenant", "tz", "queue", "priority")] == ["acme", "Asia/Kolkata", "mail", 7]
    assert "tenant      acme, whose tz and queue it follows" in hello("schedules", "show", "hello").stdout
    edit(hello, "--tenant", "beta")
    assert [facts(hello)[name] for name in ("tz", "queue", "priority")] == ["America/New_York", "default", 7]
    edit(hello, "--priority", "")
    assert facts(hello)["priority"] == 5
    edit(hello, "--tz", "Europe/Paris")
    hello("tenants", "put", "beta", "--tz", "UTC")
    assert facts(hello)["tz"] == "Europe/Paris"
    edit(hello, "--tenant", "")
    assert [facts(hello)[name] for name in ("tenant", "tz", "priority")] == [None, "Europe/Paris", 5]


def test_a_rule_that_names_its_zone_keeps_it_and_an_edit_moves_it(hello):
    edit(hello, "--calendar", "days=1 at=00:05 tz=Europe/Paris", "--tenant", "acme")
    assert (facts(hello)["tz"], facts(hello)["queue"]) == ("Europe/Paris", "mail")
    edit(hello, "--tz", "Asia/Tokyo")
    assert facts(hello)["trigger"] == {"calendar": {"days": 1, "at": "00:05"}, "tz": "Asia/Tokyo"}


def test_days_are_days_in_the_schedules_zone(hello):
    edit(hello, "--tz", "Asia/Kolkata", "--start", "2030-01-01", "--end", "2030-12-31")
    shown = hello("schedules", "show", "hello").stdout
    assert "starts      2030-01-01 in its zone (in " in shown
    edit(hello, "--tz", "America/New_York")
    shown = hello("schedules", "show", "hello").stdout
    assert "ends        2030-12-31 in its zone (in " in shown
    assert "2030-01-01 00:05 EST" in shown
    edit(hello, "--start", "", "--end", "2031-01-01T00:00Z")
    shown = hello("schedules", "show", "hello").stdout
    assert "starts" not in shown
    assert "ends        2031-01-01 00:00:00Z" in shown


def test_a_look_ahead_is_taken_back(hello):
    edit(hello, "--lookahead", "6h", "--jitter", "10s")
    assert facts(hello)["lookahead"] == "6h"
    edit(hello, "--lookahead", "", "--jitter", "")
    assert facts(hello)["lookahead"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--tenant", "nobody"], 5, "names the tenant 'nobody', which does not exist"),
        (["--tz", ""], 2, "this one has none; give a value"),
        (["--lookahead", "90d"], 2, "31 days or less"),
        (["--lookahead", "5x"], 2, "'5x' is not understood"),
        (["--end", "2030-13-01"], 2, "is not a day or a time; write it as 2026-10-14"),
        (["--end", "soon"], 2, "'soon' is not a day or a time"),
        (["--start", "2030-01-02", "--end", "2030-01-01"], 2, "end lies before its start"),
    ],
)
def test_edits_that_make_no_sense_are_refused_and_change_nothing(hello, words, code, said):
    before = facts(hello)
    assert said in hello("schedules", "edit", "hello", *words, code=code).stderr
    assert facts(hello) == before


def test_an_empty_duration_of_a_new_schedule_is_refused(hello):
    words = ["schedules", "add", "x", "greet", "a", "--every", "5m", "--lookahead", ""]
    assert "duration ''" in hello(*words, code=2).stderr


def test_a_plan_says_tenant_and_look_ahead_in_words(hello):
    jobs = hello.folder / "jobs.py"
    hello.sync()
    old = 'description="The morning report"'
    jobs.write_text(jobs.read_text().replace(old, 'tenant="acme", lookahead="6h", jitter="90s"'))
    hello.forget()
    planned = hello("schedules", "plan").stdout
    for line in (
        "~ report  re-time",
        "    queue: default → mail",
        "    jitter: none → 1m30s",
        "    lookahead: none → 6h",
        "    tenant: none → acme",
        "    follows its tenant in: none → queue (else default), priority (else 0)",
        "    description: The morning report → none",
    ):
        assert f"{line}\n" in planned
    hello("schedules", "apply", "--by", "deploy")
    assert hello.data("schedules", "changes", "report")[0]["by"] == "deploy"
    assert hello("schedules", "plan").stdout == "nothing would change\n"
