"""tenants: make, change, pause and remove them, and what their schedules make of it."""

from __future__ import annotations

import pytest

from rota.operations.audit import whoami


@pytest.fixture(autouse=True)
def _app_is_known(folder, monkeypatch):  # noqa: ARG001 - which forgets what the environment says
    monkeypatch.setenv("ROTA_APP", "jobs.py")


@pytest.fixture
def acme(rota):
    """A tenant in Kolkata with one daily schedule."""
    rota("migrate")
    rota("tenants", "put", "acme", "--tz", "Asia/Kolkata", "--queue", "mail", "--by", "ann")
    rota("schedules", "add", "standup", "greet", "ann", "--calendar", "days=1 at=00:05", "--tenant", "acme")
    return rota


def schedule(rota, schedule_id: str = "standup"):
    return next(one for one in rota.data("schedules", "list") if one["id"] == schedule_id)


def test_a_store_without_tenants_says_how_to_make_one(rota):
    rota("migrate")
    assert "`rota tenants put NAME --tz ZONE` makes one" in rota("tenants", "list").stderr
    assert rota.data("tenants", "list") == []


def test_tenants_are_listed_in_every_form(acme):
    said = acme("tenants", "put", "beta", "--tz", "UTC", "--priority", "high", "--description", "The other one").stderr
    assert said == "added beta: UTC\n"
    lines = acme("tenants", "list").stdout.splitlines()
    assert lines[0].split() == ["tenant", "zone", "local", "time", "queue", "priority", "state", "about"]
    assert lines[1].startswith("acme    Asia/Kolkata  ")
    assert lines[1].endswith("IST  mail   -         open   -")
    assert lines[2].endswith("-      10        open   The other one")
    assert [(one["name"], one["queue"], one["priority"]) for one in acme.data("tenants", "list")] == [
        ("acme", "mail", None),
        ("beta", None, 10),
    ]
    assert acme("tenants", "list", "-o", "csv").stdout.startswith("name,version,state,tz")
    assert len(acme("tenants", "list", "-o", "jsonl").stdout.splitlines()) == 2


def test_more_tenants_than_a_page_are_all_listed(rota, store):
    from rota import App  # noqa: PLC0415 - the fixture of that name is the command

    app = App(f"sqlite:///{store.path}")
    for number in range(205):
        app.tenants.put(f"t{number:03}", tz="UTC")
    app.close()
    assert len(rota.data("tenants", "list")) == 205


def test_a_page_has_its_schedules_and_its_last_changes(acme):
    for number in range(21):
        acme("schedules", "add", f"s{number:02}", "greet", "x", "--every", "5m", "--tenant", "acme")
    text = acme("tenants", "show", "acme").stdout
    assert text.startswith("acme  open\n\n  zone          Asia/Kolkata, where it is ")
    assert "zone changes  recompute: a new zone holds at once" in text
    assert "priority      its schedules and their tasks say it" in text
    schedules = text.partition("schedules\n")[2].partition("\n\n")[0].splitlines()
    assert len(schedules) == 22
    assert schedules[1].startswith("  s00       20")
    assert schedules[-1] == "  and 2 more: `rota schedules list --tenant acme`"
    assert "  created by ann" in text.partition("last changes\n")[2]
    facts = acme.data("tenants", "show", "acme")
    assert (facts["name"], facts["state"], facts["pause"]) == ("acme", "open", None)


def test_a_page_without_schedules_says_how_to_make_one(rota):
    rota("migrate")
    rota("tenants", "put", "acme", "--tz", "UTC")
    assert "none; `rota schedules add ID TASK --tenant acme …` makes one" in rota("tenants", "show", "acme").stdout


def test_schedules_follow_what_is_put(acme):
    assert (schedule(acme)["tz"], schedule(acme)["queue"]) == ("Asia/Kolkata", "mail")
    said = acme("tenants", "put", "acme", "--tz", "Europe/London").stderr
    assert said == "changed acme: Europe/London, 1 schedule\n"
    assert (schedule(acme)["tz"], schedule(acme)["queue"]) == ("Europe/London", "mail")  # what is not given stays
    acme("tenants", "put", "acme", "--queue", "", "--priority", "5")
    assert (schedule(acme)["queue"], schedule(acme)["priority"]) == ("default", 5)
    assert acme("tenants", "put", "acme", "--priority", "5").stderr == "nothing was to be changed about acme\n"
    assert acme.data("tenants", "put", "acme", "--on-zone-change", "keep_next")[0]["on_zone_change"] == "keep_next"


def test_a_pause_stops_all_and_says_who_and_why(acme):
    acme("schedules", "pause", "standup", "--by", "bob", "--reason", "away")
    said = acme("tenants", "pause", "acme", "--reason", "month end", "--by", "ann").stderr
    assert said == "paused acme: Asia/Kolkata, 1 schedule; `rota tenants resume acme` ends it\n"
    assert "paused by ann: month end" in acme("tenants", "list").stdout
    both = [line for line in acme("schedules", "show", "standup").stdout.splitlines() if line.startswith("  paused")]
    assert [line.partition(", ")[2] for line in both] == [
        "paused by bob: away",
        "paused with tenant acme by ann: month end",
    ]
    pause = schedule(acme)["pause"]
    assert (pause["by"], pause["reason"], pause["tenant"]) == ("bob", "away", None)
    assert "standup stays paused with its tenant" in acme("schedules", "resume", "standup").stderr
    assert schedule(acme)["state"] == "paused"
    assert acme("tenants", "resume", "acme").stderr == "resumed acme: Asia/Kolkata, 1 schedule\n"
    assert schedule(acme)["state"] == "on"
    assert acme("tenants", "resume", "acme").stderr == "was not paused: acme\n"


def test_a_schedule_that_is_paused_itself_stays_so(acme):
    acme("schedules", "pause", "standup")
    acme("tenants", "pause", "acme", "--for", "2h")
    assert "paused by themselves, and still so: standup" in acme("tenants", "resume", "acme").stderr
    assert schedule(acme)["state"] == "paused"


def test_a_schedule_that_is_added_to_a_paused_tenant_is_paused(acme):
    acme("tenants", "pause", "acme", "--by", "ann")
    said = acme("schedules", "add", "late", "greet", "x", "--every", "5m", "--tenant", "acme").stderr
    assert "it is paused with tenant acme by ann" in said


def test_only_a_tenant_without_schedules_is_removed(acme):
    assert "still has schedules (one is 'standup')" in acme("tenants", "remove", "acme", code=6).stderr
    acme("schedules", "remove", "standup")
    assert acme("tenants", "remove", "acme", "--by", "bob").stderr == "removed acme\n"
    assert "no tenant has the name 'acme'" in acme("tenants", "show", "acme", code=5).stderr
    assert [(one["verb"], one["by"]) for one in acme.data("tenants", "changes", "acme")] == [
        ("removed", "bob"),
        ("created", "ann"),
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["put", "new"], 2, "tenant 'new' does not exist yet, and a new one needs --tz"),
        (["put", "new", "--tz", "Mars/Base"], 2, "unknown timezone 'Mars/Base'"),
        (["put", "acme", "--tz", ""], 2, "names no zone"),
        (["put", "a b", "--tz", "UTC"], 2, "a b"),
        (["put", "acme", "--priority", "500"], 2, "500"),
        (["put", "acme", "--on-zone-change", "never"], 2, "never"),
        (["show", "nobody"], 5, "`rota tenants put nobody --tz ZONE` makes it"),
        (["changes", "nobody"], 5, "no tenant has the name 'nobody'"),
        (["pause", "nobody"], 5, "no tenant has the name 'nobody'"),
        (["pause", "acme", "--until", "2020-01-01T00:00Z"], 2, "lies in the past"),
        (["pause", "acme", "--until", "2099-01-01T00:00Z", "--for", "1h"], 2, "give one of them"),
        (["resume", "nobody"], 5, "`rota tenants list` shows those that exist"),
        (["remove", "nobody"], 5, "no tenant has the name 'nobody'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(acme, words, code, said):
    before = acme.data("tenants", "list")
    assert said in acme("tenants", *words, code=code).stderr
    assert acme.data("tenants", "list") == before


def test_schedules_are_listed_by_tenant(acme):
    acme("schedules", "add", "other", "greet", "x", "--every", "5m")
    assert [one["id"] for one in acme.data("schedules", "list", "--tenant", "acme")] == ["standup"]
    assert acme("schedules", "list").stdout.splitlines()[0].split()[:2] == ["schedule", "tenant"]
    assert "no tenant has the name 'nobody'" in acme("schedules", "list", "--tenant", "nobody", code=5).stderr
    for words in (
        ["schedules", "list", "--tenant", "acmee"],
        ["tenants", "show", "acmee"],
        ["tenants", "pause", "acmee"],
    ):
        assert "no tenant has the name 'acmee'; did you mean acme?" in acme(*words, code=5).stderr
    said = acme("schedules", "add", "third", "greet", "x", "--every", "5m", "--tenant", "acmee", code=5).stderr
    assert "did you mean acme? A new one needs `rota tenants put acmee --tz …` first" in said
    acme("tenants", "put", "beta", "--tz", "UTC")
    assert acme("schedules", "list", "--tenant", "beta").stderr == "tenant beta has no schedules\n"


def test_nobody_said_who_so_it_is_the_user_at_this_host(acme):
    acme("tenants", "pause", "acme")
    assert acme.data("tenants", "changes", "acme", "--limit", "1")[0]["by"] == whoami()
