"""Lists of jobs on MongoDB: what is examined is bounded by what is shown, wherever the matches lie."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest
from bson.timestamp import Timestamp
from mongo_servers import documents, emptied, patient, replica_set_url, standalone_url  # noqa: F401

from amounts import amount
from rota.model.jobs.job import FINAL, State
from rota.model.jobs.outcome import Returned
from rota.store.contract import JobFilter
from rota.store.mongo import listing
from rota.store.mongo.database import Collection
from rota.testing.store_suite.builders import DAY, T0, a_job
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add, add_job, all_jobs, claim, fail, ids, running_job, settle_job

MANY, FEW, SHOWN = amount(1_400, 10_000), 20, 50
BOUND = 4 * SHOWN  # documents and keys that a list may look at, all its questions together …
FEW_OF_A_KIND = 300  # what counts as few in these tests, less than half of MANY
FEW_KEYS = FEW_OF_A_KIND + 1  # … and keys, to learn whether a kind has few jobs


@pytest.fixture(params=["standalone_url", "replica_set_url"])
def store(request):
    make = emptied(request.getfixturevalue(request.param), "lists")
    with opened(make) as handle:  # no other handle of this namespace is open that remembers its marks of time
        documents(handle).meta.delete_many({"_id": {"$regex": "^slice"}})
    with opened(make) as handle:
        yield handle


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(listing, "FEW", FEW_OF_A_KIND)


@contextmanager
def counted(store):
    """How much the server looks at meanwhile."""
    database = documents(store).database
    mine = {"ns": documents(store).jobs.full_name}
    seen = SimpleNamespace(looks=0, docs=0, keys=0)
    database.command("profile", 0)
    database.drop_collection("system.profile")
    database.create_collection("system.profile", capped=True, size=1 << 22)
    database.command("profile", 2)
    try:
        yield seen
    finally:
        database.command("profile", 0)
    for look in database["system.profile"].find(mine):
        seen.looks += 1
        seen.docs += look.get("docsExamined", 0)
        seen.keys += look.get("keysExamined", 0)


def put(store, state, ids):
    """Have these jobs in a state, as if they had come there one by one."""
    fields = {"state": state.value}
    if state in FINAL:
        fields |= {"finished_at": T0}
    if state is State.RUNNING:
        fields |= {"lease_until": T0 + DAY, "holder": "w", "started_at": T0, "lease_no": 1}
    if state is State.HELD:
        fields |= {"waits_for": "another"}
    documents(store).jobs.update_many({"_id": {"$in": ids}}, {"$set": fields})


def fill(store, number, state=State.QUEUED, **options):
    made = add(store, *[a_job(**options) for _ in range(number)])
    put(store, state, made)
    return made


def shows(store, where, expected):
    """A first and a second page of these jobs, newest first, by few looks at few things."""
    wanted = expected[::-1][: 2 * SHOWN]
    with counted(store) as seen:
        page = store.list_jobs(where, limit=SHOWN)
    assert ids(page.items) == wanted[:SHOWN]
    assert seen.looks > 0
    assert (seen.docs <= BOUND, seen.keys <= BOUND + FEW_KEYS) == (True, True), (where, seen)
    if page.cursor is None:
        return
    with counted(store) as seen:
        assert ids(store.list_jobs(where, cursor=page.cursor, limit=SHOWN).items) == wanted[SHOWN:]
    assert (seen.docs <= BOUND, seen.keys <= BOUND + FEW_KEYS) == (True, True), (where, seen)


@pytest.mark.parametrize("newer", [State.QUEUED, State.SUCCEEDED])
def test_a_handful_of_the_oldest_is_found_behind_all_others(store, newer):
    states = [state for state in State if state is not newer]
    made = {state: fill(store, FEW, state, queue="rare", task=f"rare.{state}") for state in states}
    fill(store, MANY, newer, task="noop")
    for state in states:
        shows(store, JobFilter(states=(state,)), made[state])
        shows(store, JobFilter(task=f"rare.{state}"), made[state])
        shows(store, JobFilter(states=(state,), task=f"rare.{state}"), made[state])
        shows(store, JobFilter(states=(newer,), task=f"rare.{state}"), [])
        shows(store, JobFilter(states=(newer,), queue="rare"), [])
        shows(store, JobFilter(queue="rare", task=f"rare.{state}"), made[state])
    rare = [job_id for state in states for job_id in made[state]]
    shows(store, JobFilter(queue="rare"), rare)
    shows(store, JobFilter(task="rare.*"), rare)
    shows(store, JobFilter(queue="rare", task="rare.*"), rare)


@pytest.mark.parametrize("older", [state for state in State if state is not State.RUNNING])
def test_the_older_half_is_found_behind_the_newer(store, older):
    newer = State.QUEUED if older is not State.QUEUED else State.SUCCEEDED
    old = fill(store, MANY // 2, older, queue="a", task="old")
    new = fill(store, MANY // 2, newer, queue="b", task="new")
    for state, made in ((older, old), (newer, new)):
        shows(store, JobFilter(states=(state,)), made)
    for queue, task, made in (("a", "old", old), ("b", "new", new)):
        shows(store, JobFilter(queue=queue), made)
        shows(store, JobFilter(task=task), made)
        shows(store, JobFilter(task=f"{task[:2]}*"), made)
    shows(store, JobFilter(), old + new)


def test_half_a_line_that_is_done_is_found_behind_the_rest_of_it(store):
    made = fill(store, MANY)
    done, waiting = made[: MANY // 2], made[MANY // 2 :]
    put(store, State.SUCCEEDED, done)
    for state, of_state in ((State.SUCCEEDED, done), (State.QUEUED, waiting)):
        shows(store, JobFilter(states=(state,)), of_state)
        shows(store, JobFilter(states=(state,), queue="default"), of_state)


@pytest.mark.parametrize("where", [{"task": "often"}, {"schedule_id": "tick"}], ids=str)
def test_few_ready_jobs_are_found_behind_many_of_other_tasks(store, where):
    fill(store, MANY // 2, State.SUCCEEDED, task="often", schedule_id="tick")
    fill(store, MANY // 2, queue="line")
    (made,) = add(store, a_job(task="often", schedule_id="tick"))
    filled = JobFilter(states=(State.QUEUED,), **where)
    for read in (lambda: ids(store.list_jobs(filled).items) == [made], lambda: store.count_jobs(filled) == 1):
        with counted(store) as seen:
            assert read()
        assert (seen.docs <= BOUND + FEW_KEYS, seen.keys <= BOUND + 2 * FEW_KEYS) == (True, True), seen


@pytest.mark.parametrize(
    "where",
    [
        JobFilter(task="often"),
        JobFilter(schedule_id="tick"),
        JobFilter(states=(State.SUCCEEDED,)),
        JobFilter(states=(State.SUCCEEDED,), least_attempts=2),
        JobFilter(states=(State.FAILED,), task="often"),
        JobFilter(states=(State.FAILED,), schedule_id="tick"),
    ],
    ids=str,
)
def test_a_count_reads_keys_of_an_index_and_no_job(store, where):
    made = fill(store, MANY // 2, State.SUCCEEDED, task="often", schedule_id="tick")
    failed = fill(store, FEW, State.FAILED, task="often", schedule_id="tick")
    fill(store, MANY // 2, State.FAILED, task="other")
    documents(store).jobs.update_many({"_id": {"$in": [*made, *failed]}}, {"$set": {"attempts": 2}})
    expected = FEW if State.FAILED in where.states else len(made) + FEW * (not where.states)
    with counted(store) as seen:
        assert store.count_jobs(where) == expected
    assert seen.docs == 0
    assert seen.keys <= 2 * (expected + FEW_KEYS)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.SCHEDULED, State.HELD, State.FAILED, State.CANCELLED])
@pytest.mark.parametrize("where", [{"task": "often"}, {"task": "of*"}, {"queue": "mine"}], ids=str)
def test_a_state_of_a_task_or_a_queue_is_found_without_others_in_it(store, state, where):
    made = fill(store, MANY, task="often", queue="mine")
    put(store, state, made[::2])
    fill(store, MANY, state, task="newer", queue="other")
    filled = JobFilter(states=(state,), **where)
    shows(store, filled, made[::2])
    with counted(store) as seen:
        assert store.count_jobs(filled) == len(made[::2])
    assert seen.docs == 0
    assert seen.keys <= len(made[::2]) + BOUND


def test_scheduled_jobs_of_a_schedule_are_found_without_others(store):
    fill(store, MANY // 2, schedule_id="tick")
    made = fill(store, FEW, State.SCHEDULED, schedule_id="tick")
    fill(store, MANY // 2, State.SCHEDULED)
    shows(store, JobFilter(states=(State.SCHEDULED,), schedule_id="tick"), made)


def test_a_namespace_of_before_gets_the_indexes_of_failures(standalone_url):  # noqa: F811
    make = emptied(standalone_url)
    with opened(make) as store:
        made = fill(store, FEW, State.FAILED, task="often")
        documents(store).jobs.drop_index("failed_task")
        documents(store).meta.update_one({"_id": "control"}, {"$unset": {"has_failed": ""}})
    with opened(make) as store:
        assert "failed_task" in documents(store).jobs.index_information()
        assert ids(store.list_jobs(JobFilter(states=(State.FAILED,), task="often")).items) == made[::-1]


def test_a_namespace_of_before_gets_the_kinds_of_each_state(standalone_url):  # noqa: F811
    make = emptied(standalone_url)
    with opened(make) as store:
        made = fill(store, FEW, State.SUCCEEDED, task="often") + fill(store, FEW, State.CANCELLED, task="often")
        jobs = documents(store).jobs
        kinds = {name: jobs.index_information()[name]["key"] for name in ("late", "rest")}
        for name, states in (("late", {"$gt": "running"}), ("rest", {"$lt": "queued"})):
            jobs.drop_index(name)
            jobs.create_index([("state", 1), ("seq", 1)], name=name, partialFilterExpression={"state": states})
        documents(store).meta.update_one({"_id": "control"}, {"$unset": {"has_state_kinds": ""}})
    for _ in range(2):  # the second time, nothing is missing
        with opened(make) as store:
            now = documents(store).jobs.index_information()
            assert {name: now[name]["key"] for name in ("late", "rest")} == kinds
            ended = JobFilter(states=(State.SUCCEEDED, State.CANCELLED), task="often")
            assert ids(store.list_jobs(ended).items) == made[::-1]
            assert store.count_jobs(ended) == 2 * FEW


def test_jobs_of_a_time_are_found_without_those_of_another(store):
    old = add(store, *[a_job() for _ in range(MANY)], now=T0)
    new = add(store, *[a_job() for _ in range(FEW)], now=T0 + DAY)
    shows(store, JobFilter(since=T0 + DAY), new)
    with counted(store) as seen:
        assert store.count_jobs(JobFilter(since=T0 + DAY)) == FEW
        assert store.count_jobs(JobFilter(until=T0 - DAY)) == store.count_jobs(JobFilter(since=T0 + 2 * DAY)) == 0
    assert (seen.docs <= BOUND, seen.keys <= BOUND) == (True, True), seen
    jobs = documents(store).jobs
    hours_later = Timestamp(jobs.find_one({"_id": new[0]})["seq"].time + 10_000, 1)
    jobs.update_many({"_id": {"$in": old}}, {"$set": {"seq": hours_later, "created_at": T0 + 2 * DAY}})
    shows(store, JobFilter(until=T0 + DAY + 1), new)


def test_jobs_that_were_added_before_there_were_marks_are_of_any_time(standalone_url):  # noqa: F811
    make = emptied(standalone_url)
    with opened(make) as store:
        made = add(store, *[a_job() for _ in range(FEW)], now=T0)
        documents(store).meta.delete_many({"_id": {"$regex": "^slice"}})
        documents(store).meta.update_one({"_id": "control"}, {"$unset": {"has_slices": ""}})
    with opened(make) as store:
        assert ids(store.list_jobs(JobFilter(since=T0, until=T0 + 1)).items) == made[::-1]
        assert ids(store.list_jobs(JobFilter(since=T0 + 1)).items) == []


def test_jobs_of_all_priorities_wait_in_one_list(store):
    made = add(store, *[a_job(queue="ab"[n % 2], priority=n % 5 - 2) for n in range(200)])
    waiting = JobFilter(states=(State.QUEUED,))
    assert ids(all_jobs(store, waiting, page=7)) == made[::-1]
    assert ids(all_jobs(store, JobFilter(states=(State.QUEUED,), queue="a"), page=7)) == made[-2::-2]


@pytest.mark.parametrize("where", [JobFilter(), JobFilter(task="t*"), JobFilter(task="t7"), JobFilter(queue="q7")])
def test_more_kinds_than_one_question_merges_are_one_list(store, where):
    made = add(store, *[a_job(queue=f"q{n % 211}", task=f"t{n % 13}") for n in range(300)])
    named = {job.id: job for job in store.get_jobs(made)}
    mine = [
        job_id
        for job_id in reversed(made)
        if (where.queue in {None, named[job_id].queue}) and (where.task in {None, "t*", named[job_id].task})
    ]
    assert ids(all_jobs(store, where, page=110)) == mine


def test_more_lines_than_one_question_merges_are_one_list(store):
    made = add(store, *[a_job(queue=f"q{n % 30}", priority=n % 11) for n in range(400)])
    assert ids(all_jobs(store, JobFilter(states=(State.QUEUED,)), page=150)) == made[::-1]


def test_all_is_given_out_in_order_whatever_its_kinds(store):
    made = add(store, *[a_job(queue=f"q{n % 211}", task=f"t{n % 13}") for n in range(300)])
    given, cursor = [], None
    while True:
        page = store.dump("jobs", cursor=cursor, limit=110)
        given, cursor = [*given, *ids(page.items)], page.cursor
        if cursor is None:
            break
    assert given == made


def test_a_list_of_several_states_is_one_list(store):
    failed = running_job(store)
    fail(store, failed)
    held = add_job(store, waits_for=running_job(store).id)
    waiting = add_job(store)
    where = JobFilter(states=(State.FAILED, State.HELD, State.QUEUED))
    assert ids(all_jobs(store, where, page=1)) == [waiting, held, failed.id]
    assert ids(claim(store)) == [waiting]


def test_a_job_that_moves_while_a_list_is_read_is_neither_missed_nor_shown_twice(store, monkeypatch):
    """A list of several states reads one after another: the job goes back to its queue after that was read."""
    job = running_job(store)
    find, moves = Collection.find, iter([partial(settle_job, store, job, Returned())])

    def moving(self, query, *rest, **options):
        if query.get("state") == "running" and options.get("hint") == "leased":
            next(moves, lambda: None)()
        return find(self, query, *rest, **options)

    monkeypatch.setattr(Collection, "find", moving)
    assert ids(store.list_jobs(JobFilter(states=(State.QUEUED, State.RUNNING)), limit=2).items) == [job.id]
    assert store.get_jobs([job.id])[0].state is State.QUEUED
