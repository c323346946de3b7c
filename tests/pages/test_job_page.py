"""A job's page: two clicks to why, its life, its log as it is written, and copies that name their original."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pages.stage import Tab, page_text
from rota.inspector.facts.job import job_facts
from rota.inspector.job_life import life_of
from rota.inspector.log_tail import log_tail
from rota.model.jobs.job import NewJob, State, accept, folded
from rota.model.jobs.outcome import Failed, Returned, Snoozed, Succeeded, TaskUnknown
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import apply, cancel, claim, promote, release, rescue, retry_by_hand, settle
from rota.model.micros import SECOND, datetime_of
from rota.model.secrets.redaction import NOTHING_HIDDEN
from rota.store.contract import LogLine
from rota.store.memory import MemoryStore
from rota.web.pages.python_call import pieces_of
from rota.web.pages.tracebacks import blocks_of
from rota.web.pages.views.job import bars_of, counts_of, progress_of
from rota.web.pages.views.jobs import row

T0 = 1_790_000_000 * SECOND


def test_why_a_job_waits_is_two_clicks_away(tab):
    tab.go("/")
    tab.page.click("text=Waiting")
    tab.page.click("text=mail.send('bob@example.org'")
    assert tab.shows("no worker takes jobs from the queue mail")
    assert tab.shows("rota worker TARGET -q mail")


def test_a_failed_job_shows_its_traceback_and_its_log(tab, shop):
    tab.go(f"/jobs/{shop.ids['failed']}")
    assert tab.shows("ValueError: no funds for 3.84")
    assert tab.shows("charging order 3")
    assert tab.page.locator(".trace .mine").count() == 1


def test_a_secret_is_hidden_on_every_page_of_its_job(tab, shop):
    for path in ("", "/copy"):
        tab.go(f"/jobs/{shop.ids['queued']}{path}")
        assert "hunter2" not in tab.page.content()
        assert "[redacted]" in tab.page.content()


def test_a_copy_runs_with_other_arguments_keeps_secrets_and_names_its_original(tab, shop):
    original = shop.ids["queued"]
    tab.go(f"/jobs/{original}")
    tab.page.click("text=Run a copy…")
    tab.page.fill("#f-to", "carol@example.org")
    tab.page.click("button:has-text('Run the copy')")
    assert tab.shows("carol@example.org")
    assert tab.page.locator(f"a[href='/jobs/{original}']").count() >= 1
    copy = tab.page.url.rpartition("/")[2]
    payload = shop.app.jobs.read(copy).payload
    assert b"hunter2" in payload
    tab.go(f"/jobs/{original}")
    assert tab.page.locator(f"a[href='/jobs/{copy}']").count() == 1


def test_arguments_that_do_not_fit_are_shown_again_with_the_reason(tab, shop):
    place = "Arguments, line 1, column 4: this is not valid JSON."
    reasons = {"[1,": place, "{}": "a JSON list", '["a", "b", "c"]': "too many positional arguments"}
    tab.go(f"/jobs/{shop.ids['queued']}/copy")
    tab.page.click("text=Edit as JSON")
    for args, why in reasons.items():
        tab.page.fill("#args", args)
        tab.page.click("button:has-text('Run the copy')")
        assert tab.shows(why)
        assert tab.page.input_value("#args") == args


def test_a_log_grows_while_it_is_looked_at(tab, shop):
    job = shop.ids["queued"]
    tab.go(f"/jobs/{job}")
    shop.app.open().append_logs([LogLine(job_id=job, at=T0, level="warning", text="a line <b>of now</b>")])
    tab.page.wait_for_selector(".log >> text=a line <b>of now</b>")
    assert tab.page.locator(".log b").count() == 0


def test_a_job_is_cancelled_with_a_reason_that_is_kept(browser, shop):
    job = shop.app.__rota_tasks__.get("mail.send").using(delay="1h").enqueue("zoe@example.org")
    with Tab.open(browser, shop) as tab:
        tab.go(f"/jobs/{job.id}")
        tab.page.click("button:has-text('Cancel…')")
        tab.page.fill("#why", "a mistake")
        tab.page.click("button:has-text('Cancel the job')")
        assert tab.shows("1 job was cancelled")
        assert tab.shows("a mistake")
    assert shop.app.jobs.read(job.id).cancel_reason == "cancelled by admin: a mistake"


def make(**fields):
    return accept(NewJob(id="j", task="t", payload=b"[]", **fields), T0)


def run(job, outcome, at):
    return apply(settle(claim(job, "w1", at, at + SECOND), outcome, RetryPolicy(retries=3), at + 2 * SECOND, 0.5))


def test_every_wait_has_its_cause_and_every_attempt_its_ending():
    job = run(make(), Failed("ValueError: no\nTraceback …"), T0 + SECOND)
    job = run(promote(job, job.run_at), Snoozed(5 * SECOND, "later"), job.run_at)
    job = run(promote(job, job.run_at), TaskUnknown(), job.run_at)
    job = run(promote(job, job.run_at), Returned("returned: it stops"), job.run_at)
    held = claim(job, "w2", job.run_at + 9 * SECOND, 0)
    job = apply(rescue(held, held.started_at + SECOND))
    life = life_of(job, job.run_at + 60 * SECOND)
    assert [stage.cause or stage.ending for stage in life] == [
        "queue", "failed", "retry", "queue", "snoozed", "snooze", "queue", "unknown", "unknown", "queue",
        "returned", "returned", "lost", "lost",
    ]  # fmt: skip
    assert life[1].error.startswith("ValueError: no")
    assert life[-1].is_last
    assert all(bar["x"] >= 0 and bar["x"] + bar["width"] <= 1_000.1 for bar in bars_of(life))


def test_an_attempt_that_a_worker_lost_keeps_its_number():
    held = claim(make(), "w1", T0 + SECOND, 0)
    job = claim(apply(rescue(held, T0 + 2 * SECOND)), "w2", T0 + 3 * SECOND, 0)
    attempts = [stage for stage in life_of(job, T0 + 4 * SECOND) if stage.ending]
    assert [(stage.attempt, stage.is_again) for stage in attempts] == [(1, False), (1, True)]
    assert attempts[-1].attempt == job.attempts + 1


RELEASED = apply(release(make(waits_for="other"), T0 + 40 * SECOND))
LIVES = {  # a job as it is a minute later, and how long it was ready
    "just enqueued": (make(), 60),
    "held, then released": (claim(RELEASED, "w", T0 + 45 * SECOND, 0), 5),
    "released, and waiting": (RELEASED, 20),
    "due later": (claim(promote(make(delay=30 * SECOND), T0 + 31 * SECOND), "w", T0 + 33 * SECOND, 0), 2),
    "due before it was enqueued": (claim(make(run_at=T0 - 90 * SECOND), "w", T0 + 3 * SECOND, 0), 3),
    "returned by its worker": (claim(run(make(), Returned("it stops"), T0 + SECOND), "w", T0 + 6 * SECOND, 0), 3),
    "lost with its worker": (apply(rescue(claim(make(), "w", T0 + SECOND, 0), T0 + 11 * SECOND)), 49),
    "succeeded": (run(make(), Succeeded(), T0 + 7 * SECOND), 7),
    "cancelled while it waited": (apply(cancel(make(), T0 + 8 * SECOND, "not wanted")), 8),
}
NEVER_READY = {
    "held": make(waits_for="other"),
    "scheduled": make(delay=90 * SECOND),
    "waiting for its retry": run(make(), Failed("ValueError: no"), T0 + SECOND),
    "cancelled before it was due": apply(cancel(make(delay=90 * SECOND), T0 + SECOND, "not wanted")),
}


@pytest.mark.parametrize("life", LIVES)
def test_a_job_waited_as_long_in_the_list_as_on_its_own_page(life):
    job, waited = LIVES[life]
    now = T0 + 60 * SECOND
    stages = [stage for stage in life_of(job, now) if stage.state is State.QUEUED]
    assert row(job_facts(job, NOTHING_HIDDEN), datetime_of(now))["waited"] == stages[-1].seconds == waited


@pytest.mark.parametrize("life", NEVER_READY)
def test_a_job_that_is_not_ready_has_no_wait_in_the_list(life):
    facts = job_facts(NEVER_READY[life], NOTHING_HIDDEN)
    assert (facts.ready_at, row(facts, datetime_of(T0 + 60 * SECOND))["waited"]) == (None, None)


def test_a_retry_by_hand_is_told_apart_and_names_who_made_it(shop):
    job = shop.app.__rota_tasks__.get("mail.send").enqueue("retry@example.org")
    shop.app.jobs.cancel(job.id, by="bob")
    shop.app.jobs.retry(job.id, reason="card service was down", by="ann")
    shop.app.jobs.cancel(job.id, by="bob")
    shop.app.jobs.retry(job.id, by="cid")
    text = page_text(shop, f"/jobs/{job.id}")
    assert "Retried by ann: card service was down" in text
    assert "Retried by cid" in text
    assert "Retried by cid:" not in text


def test_failed_attempts_are_counted_whole_and_since_the_retry_by_hand():
    job, once = make(), RetryPolicy(retries=1)
    for _ in range(2):
        for _ in range(2):
            held = claim(promote(job, job.run_at) if job.state is State.SCHEDULED else job, "w1", job.run_at, 0)
            job = apply(settle(held, Failed("ValueError: no"), once, job.run_at + SECOND, 0.5))
        ended, job = job, apply(retry_by_hand(job, job.run_at + 9 * SECOND, "again"))
    assert ended.attempts == 4
    assert counts_of(life_of(ended, ended.run_at)) == {"failed": 4, "failed_since": 2}
    assert counts_of(life_of(run(make(), Failed("ValueError: no"), T0), T0)) == {"failed": 1, "failed_since": None}


def test_a_job_that_ended_at_once_still_has_a_life():
    job = make()
    life = life_of(job, T0)
    assert [stage.cause for stage in life] == ["queue"]
    assert bars_of(life)
    assert folded(job)


@pytest.mark.parametrize(
    ("text", "share"),
    [("3/10 pages", 30), ("12/10", 100), ("0/0", None), ("half", None), ("-1/4", None), ("nan/4", None)],
)
def test_progress_is_a_share_or_a_note(text, share):
    assert progress_of(text)["share"] == share


def test_the_end_of_a_long_log_is_found_by_few_looks():
    store = MemoryStore()
    store.add_jobs([NewJob(id=name, task="t", payload=b"[]") for name in ("j", "other")])
    lines = [LogLine(job_id="j", at=T0, level="info", text=str(number)) for number in range(5_000)]
    for start in range(0, 5_000, 1_000):
        store.append_logs(lines[start : start + 1_000])
        store.append_logs([LogLine(job_id="other", at=T0, level="info", text="x")])
    tail = log_tail(store, "j", 100)
    assert [line.text for line in tail.lines] == [str(number) for number in range(4_900, 5_000)]
    assert tail.has_more


def test_frames_of_libraries_are_folded_and_ones_own_stand_out():
    error = (
        "KeyError: 'x'\nTraceback (most recent call last):\n"
        '  File "/srv/shop/reports.py", line 62, in build\n    page = get()\n'
        '  File "/usr/lib/python3.12/site-packages/httpx/client.py", line 1, in get\n    call()\n'
        '  File "/usr/lib/python3.12/site-packages/httpcore/pool.py", line 2, in call\n    boom()\n'
        "KeyError: 'x'"
    )
    blocks = blocks_of(error)
    assert [block.kind for block in blocks] == ["text", "mine", "lib", "error"]
    assert (blocks[2].count, blocks[2].names) == (2, "httpx, httpcore")
    assert [block.kind for block in blocks_of("just words")] == ["error"]
    assert blocks_of("") == []


def test_a_huge_call_is_cut_and_a_deep_one_ends():
    deep: list = []
    for _ in range(60):
        deep = [deep]
    assert sum(len(piece.text) for piece in pieces_of("t", ["x" * 200_000], {})) < 7_000
    assert "…" in "".join(piece.text for piece in pieces_of("t", [deep], {}))
    when = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    text = "".join(piece.text for piece in pieces_of("t", [1, None], {"when": when, "of": {"a": [True]}}))
    assert text == f"t(1, None, when='{when}', of={{'a': [True]}})"
