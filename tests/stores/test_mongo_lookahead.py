"""Jobs made ahead, notes and lists of schedules on MongoDB: a process may die at any write, rivals may meet anywhere,
and what is asked often costs no more than it did."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from mongo_servers import documents, emptied, replica_set_url, standalone_url  # noqa: F401
from pymongo.collection import Collection

from rota import failpoints
from rota.model.entry import EntryEdit
from rota.model.jobs.job import State
from rota.model.schedules.edit import pause, resume
from rota.store.contract import AuditFilter, Retention, ScheduleFilter
from rota.store.mongo import schedules
from rota.store.mongo.adding import insert
from rota.testing.store_suite.builders import DAY, HOUR, MINUTE, T0, a_job, a_line
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.lookahead import created_early
from rota.testing.store_suite.notify import is_woken, listener_on
from rota.testing.store_suite.records import an_audit_record, audit_records, entry
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    history,
    ids,
    is_kept,
    ledger,
    new_schedule,
    read,
    read_schedule,
    succeed,
)

KEEP_ALL = Retention(succeeded_for=10_000 * DAY, failed_for=10_000 * DAY, cancelled_for=10_000 * DAY)
WRITES = ("bulk_write", "update_one", "update_many", "insert_one", "insert_many", "delete_many", "find_one_and_update")
MOST_WRITES = 30  # of one verb
OUTCOMES = {  # of two occurrences that are due at once
    "skip": {("running", "skipped")},
    "queue": {("running", "held")},
    "cancel": {("running", "held"), ("cancelled", "running")},  # started before the second was decided, or not
    "allow": {("running", "running")},
}


class Crash(BaseException):
    """A process that dies before a write; nothing that it would do after that is done."""


@pytest.fixture(params=["standalone", "replica-set"])
def make_store(request):
    url = request.getfixturevalue("standalone_url" if request.param == "standalone" else "replica_set_url")
    return emptied(url)


@pytest.fixture
def store(make_store):
    with opened(make_store) as store:
        yield store


@pytest.fixture
def dying(monkeypatch):
    """Does something in a process that dies before its write of that number, and gives whether it came so far."""

    def run(number, work):
        me, left = threading.get_ident(), [number]

        def patched(real):
            def call(*args, **options):
                if threading.get_ident() == me:
                    left[0] -= 1
                    if left[0] < 0:  # from then on it is dead: also what would be tidied up is not
                        raise Crash
                return real(*args, **options)

            return call

        with monkeypatch.context() as patch:
            for name in WRITES:
                patch.setattr(Collection, name, patched(getattr(Collection, name)))
            try:
                work()
            except Crash:
                return True
        return False

    return run


@pytest.fixture
def meanwhile():
    """Has something done by others when a claim has decided, and has not written yet; gives what they got."""

    def install(work):
        got = []

        def hook(name):
            if name == "exchange.before_commit":
                failpoints.install(None)
                got.extend(work() or ())

        failpoints.install(hook)
        return got

    yield install
    failpoints.install(None)


def upkeep(store, *, now):
    """Two rounds, far enough apart."""
    store.expired_jobs(10, now=now)
    for n in range(2):
        store.prune(KEEP_ALL, 100, now=now + n * HOUR)


def lines(store):
    return {line.through_at: line.outcome for line in ledger(store)}


def each_death(make_store, dying, prepare, work):
    """Stores in which a process died before the first write of some work, the second, and so on."""
    for number in range(MOST_WRITES):
        with opened(emptied(*make_store.args, make_store.keywords["namespace"])) as store:
            prepare(store)
            has_died = dying(number, lambda store=store: work(store))
            with opened(make_store) as other:
                yield other
        if not has_died:
            return
    raise AssertionError("more writes than that")


class TestDeathsWhileJudging:
    def test_of_one_that_is_ready(self, make_store, dying):
        for store in each_death(make_store, dying, created_early, lambda store: claim(store, now=T0 + MINUTE)):
            claim(store, now=T0 + MINUTE)
            first = next(job for job in all_jobs(store) if job.fire_at == T0 + MINUTE)
            assert (first.state, first.lease_no, first.waits_for) == (State.RUNNING, 1, None)
            upkeep(store, now=T0 + MINUTE)
            check_store(store)

    def test_of_one_that_is_skipped(self, make_store, dying):
        def prepare(store):
            _, second, _ = created_early(store, overlap="skip")
            store.append_logs([a_line(second.id, "early")])
            claim_one(store, now=T0 + MINUTE)

        for store in each_death(make_store, dying, prepare, lambda store: claim(store, now=T0 + 2 * MINUTE)):
            assert lines(store)[T0 + 2 * MINUTE] in {"scheduled", "skipped"}  # never lost
            was = lines(store)[T0 + 2 * MINUTE]
            succeed(store, read(store, min(ids(all_jobs(store)))), now=T0 + 2 * MINUTE)
            claimed = claim(store, now=T0 + 2 * MINUTE)
            assert [job.fire_at for job in claimed] == ([T0 + 2 * MINUTE] if was == "scheduled" else [])
            upkeep(store, now=T0 + 2 * MINUTE)
            assert lines(store)[T0 + 2 * MINUTE] == ("running" if was == "scheduled" else "skipped")
            assert documents(store).jobs.count_documents({"owed": {"$exists": True}}) == 0
            assert documents(store).logs.count_documents({}) == (1 if was == "scheduled" else 0)
            check_store(store)

    def test_of_one_that_is_held(self, make_store, dying):
        def prepare(store):
            created_early(store, overlap="cancel")
            claim_one(store, now=T0 + MINUTE)

        for store in each_death(make_store, dying, prepare, lambda store: claim(store, now=T0 + 2 * MINUTE)):
            assert claim(store, now=T0 + 2 * MINUTE) == []
            running, second, _ = sorted(all_jobs(store), key=lambda job: job.run_at)
            assert running.cancel_reason == "replaced by the next occurrence"
            assert (second.state, second.waits_for) == (State.HELD, running.id)
            succeed(store, running, now=T0 + 2 * MINUTE)
            assert ids(claim(store, now=T0 + 2 * MINUTE)) == [second.id]
            upkeep(store, now=T0 + 2 * MINUTE)
            check_store(store)

    def test_of_a_pause_that_unmakes(self, make_store, dying):
        def rest(store):
            edit = pause(read_schedule(store), T0 + MINUTE + 1, reason="rest", by="ann", until=None)
            store.edit_schedules([msgspec.structs.replace(edit, audit=an_audit_record())], now=T0 + MINUTE + 1)

        for store in each_death(make_store, dying, created_early, rest):
            if read_schedule(store).pause is None:
                assert len(all_jobs(store)) == 3
                assert audit_records(store) == []
                rest(store)
            assert [(job.fire_at, job.state) for job in all_jobs(store)] == [(T0 + MINUTE, State.CANCELLED)]
            assert len(audit_records(store)) == 1
            change_schedule(store, resume(read_schedule(store), T0 + MINUTE + 2), now=T0 + MINUTE + 2)
            assert len(fire(store, now=T0 + MINUTE + 2).jobs) == 3
            upkeep(store, now=T0 + MINUTE + 2)
            check_store(store)

    def test_of_one_that_is_skipped_and_that_another_waits_for(self, make_store, dying):
        def prepare(store):
            _, second, _ = created_early(store, overlap="skip")
            add_job(store, waits_for=second.id, queue="other")
            claim_one(store, now=T0 + MINUTE)

        for store in each_death(make_store, dying, prepare, lambda store: claim(store, now=T0 + 2 * MINUTE)):
            assert claim(store, now=T0 + 2 * MINUTE) == []
            upkeep(store, now=T0 + 2 * MINUTE)
            assert len(claim(store, 9, queues=("other",), now=T0 + 2 * MINUTE)) == 1
            check_store(store)

    def test_of_a_pause_that_unmakes_what_another_waits_for(self, make_store, dying):
        def prepare(store):
            _, second, _ = created_early(store)
            add_job(store, waits_for=second.id, queue="other")

        def rest(store):
            edit = pause(read_schedule(store), T0 + 1, reason="rest", by="ann", until=None)
            store.edit_schedules([edit], now=T0 + 1)

        for store in each_death(make_store, dying, prepare, rest):
            if read_schedule(store).pause is None:
                assert claim(store, 9, queues=("other",), now=T0 + 1) == []
                rest(store)
            upkeep(store, now=T0 + 1)
            assert len(claim(store, 9, queues=("other",), now=T0 + 1)) == 1
            check_store(store)


class TestReleasing:
    def test_those_who_work_on_other_queues_hear_of_what_a_judgement_releases(self, store):
        _, second, _ = created_early(store, overlap="skip")
        behind = add_job(store, waits_for=second.id, queue="other")
        claim_one(store, now=T0 + MINUTE)
        with listener_on(store, "jobs") as listener:
            assert is_woken(listener, lambda: claim(store, now=T0 + 2 * MINUTE))
        assert ids(claim(store, queues=("other",), now=T0 + 2 * MINUTE)) == [behind]

    def test_a_held_run_behind_one_that_is_unmade_is_cancelled_and_not_released(self, store):
        """The clock stepped back: what is due waits for what is to come. Both go with the edit, and the last waits no
        more."""
        add_schedule(store, overlap="queue")
        fire(store, now=T0 + MINUTE)
        fire(store, now=T0 + 2 * MINUTE)
        first, second = sorted(all_jobs(store), key=lambda job: job.run_at)
        assert (first.state, second.waits_for) == (State.QUEUED, first.id)
        behind = add_job(store, waits_for=second.id)
        edit = pause(read_schedule(store), T0 + 2 * MINUTE, reason="rest", by="ann", until=None)
        later = first.fire_at + HOUR
        documents(store).jobs.update_one({"_id": first.id}, {"$set": {"fire_at": later}})
        edit = msgspec.structs.replace(edit, delete_after=T0 + 2 * MINUTE)
        change_schedule(store, edit, now=T0 + 2 * MINUTE)
        assert not is_kept(store, first.id)
        assert history(store, second.id) == [State.HELD, State.CANCELLED]
        assert ids(claim(store, 9, now=T0 + 2 * MINUTE)) == [behind]
        check_store(store)


class TestDeathsWhileEditingEntries:
    @pytest.mark.parametrize("data", ["[2]", None])
    def test_an_entry_is_never_without_its_note(self, make_store, dying, data):
        note = an_audit_record(subject="tenant:acme")
        edit = EntryEdit(kind="tenant", name="acme", expect_version=1, data=data, audit=note)

        def prepare(store):
            assert store.edit_entries([EntryEdit(kind="tenant", name="acme", expect_version=0, data="1")]) == []

        for store in each_death(make_store, dying, prepare, lambda store, edit=edit: store.edit_entries([edit])):
            is_done = (found := entry(store)) is None or found.version == 2
            assert audit_records(store) == ([note] if is_done else [])
            if not is_done:
                assert store.edit_entries([edit]) == []
            assert (entry(store) is None) == (data is None)
            assert audit_records(store) == [note]
            assert documents(store).entries.count_documents({"left": {"$exists": True}}) == 0

    def test_one_that_went_can_come_again_before_it_is_wiped_away(self, make_store, dying):
        gone = EntryEdit(kind="tenant", name="acme", expect_version=1, data=None, audit=an_audit_record())
        new = EntryEdit(kind="tenant", name="acme", expect_version=0, data="2", audit=an_audit_record())

        def prepare(store):
            assert store.edit_entries([EntryEdit(kind="tenant", name="acme", expect_version=0, data="1")]) == []

        for store in each_death(make_store, dying, prepare, lambda store: store.edit_entries([gone])):
            if entry(store) is None:
                assert store.edit_entries([new, new]) == ["acme"]
                assert entry(store).data == "2"
                assert len(audit_records(store)) == 2
                assert entry(store).data == "2"


class TestRivals:
    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel", "allow"])
    def test_one_that_another_has_decided_meanwhile_is_left_alone(self, store, make_store, meanwhile, overlap):
        first, *_ = created_early(store, overlap=overlap)
        with opened(make_store) as other:
            theirs = meanwhile(lambda: claim(other, 9, now=T0 + MINUTE))
            assert claim(store, 9, now=T0 + MINUTE) == []
        assert ids(theirs) == [first.id]
        assert (read(store, first.id).state, read(store, first.id).lease_no) == (State.RUNNING, 1)
        check_store(store)

    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
    def test_one_that_met_a_run_which_is_over_meanwhile(self, store, make_store, meanwhile, overlap):
        created_early(store, overlap=overlap, lookahead=3 * MINUTE)
        running = claim_one(store, now=T0 + MINUTE)

        def end(other):
            succeed(other, running, now=T0 + 2 * MINUTE)
            return claim(other, 9, now=T0 + 2 * MINUTE)

        with opened(make_store) as other:
            theirs = meanwhile(lambda: end(other))
            assert claim(store, 9, now=T0 + 2 * MINUTE) == []
        (second,) = theirs
        kept = read(store, second.id)
        assert (kept.state, kept.lease_no, kept.cancel_reason) == (State.RUNNING, 1, None)
        assert list(lines(store).values()) == ["succeeded", "running"]
        check_store(store)

    @pytest.mark.parametrize("taken", [{"slot": "tick"}, {"key": "k"}], ids=str)
    def test_one_whose_slot_or_key_another_takes_meanwhile_is_judged_anew(self, store, meanwhile, taken):
        """It was about to be ready: now it overlaps."""
        _, second, _ = created_early(store, overlap="skip", key="k")
        first = claim_one(store, now=T0 + MINUTE)
        succeed(store, first, now=T0 + MINUTE)
        meanwhile(lambda: add(store, a_job(**taken, queue="other")))
        assert claim(store, 9, now=T0 + 2 * MINUTE) == []
        assert not is_kept(store, second.id)
        assert lines(store)[T0 + 2 * MINUTE] == "skipped"
        check_store(store)

    def test_one_that_is_unmade_meanwhile_stays_so(self, store, make_store, meanwhile):
        first, *_ = created_early(store)
        with opened(make_store) as other:
            edit = pause(read_schedule(other), T0 + MINUTE, reason="rest", by="ann", until=None)
            meanwhile(lambda: other.edit_schedules([edit], now=T0 + MINUTE))
            assert claim(store, 9, now=T0 + MINUTE) == []
        assert [(job.id, job.state) for job in all_jobs(store)] == [(first.id, State.CANCELLED)]
        check_store(store)

    @pytest.mark.parametrize("overlap", ["skip", "queue", "cancel", "allow"])
    def test_claims_at_once_judge_each_job_once(self, store, make_store, overlap):
        names = [f"s{number}" for number in range(12)]
        for name in names:
            add_schedule(store, name, lookahead=3 * MINUTE, overlap=overlap, grace=HOUR)
            fire(store, name, now=T0)

        def work(_):
            with opened(make_store) as mine:
                return [job for _ in range(6) for job in claim(mine, 3, now=T0 + 2 * MINUTE)]

        with ThreadPoolExecutor(4) as pool:
            claimed = [job for jobs in pool.map(work, range(4)) for job in jobs]
        claimed += claim(store, 100, now=T0 + 2 * MINUTE)
        each = 2 if overlap == "allow" else 1
        assert Counter(job.schedule_id for job in claimed) == dict.fromkeys(names, each)
        assert len(set(ids(claimed))) == len(claimed)
        upkeep(store, now=T0 + 2 * MINUTE)
        check_store(store)
        for name in names:
            first, second = store.list_occurrences(name, 0, T0 + DAY).items
            assert (first.outcome, second.outcome) in OUTCOMES[overlap]


class TestDeliveriesThatComeLate:
    def test_a_job_that_was_unmade_is_not_made_again(self, standalone_url):  # noqa: F811
        """A process stood still with a firing's jobs in its hands, while others deleted them."""
        with opened(emptied(standalone_url)) as store:
            made = created_early(store)
            edit = pause(read_schedule(store), T0 + 1, reason="rest", by="ann", until=None)
            change_schedule(store, edit, now=T0 + 1)
            assert all_jobs(store) == []
            store._steps.run("fire", lambda step: insert(step, made))
            assert all_jobs(store) == []


class TestOddities:
    def test_one_that_cannot_be_read_is_parked_and_the_others_go_on(self, store):
        first, *_ = created_early(store, overlap="allow")
        documents(store).jobs.update_one({"_id": first.id}, {"$set": {"payload": "text", "ahead": ""}})
        claim(store, now=T0 + MINUTE)
        assert read(store, first.id).state is State.FAILED

    def test_of_many_that_replace_each_other_the_last_runs(self, store):
        *replaced, last = created_early(store, overlap="cancel", lookahead=20 * MINUTE)
        assert ids(claim(store, 9, now=T0 + HOUR)) == [last.id]
        assert {job.state for job in store.get_jobs(ids(replaced))} == {State.CANCELLED}
        check_store(store)

    def test_an_earlier_namesakes_skip_is_not_recorded(self, store):
        created_early(store, overlap="skip")
        claim_one(store, now=T0 + MINUTE)
        documents(store).schedules.update_one({"_id": "tick"}, {"$set": {"created_at": T0 + HOUR}})
        assert claim(store, now=T0 + 2 * MINUTE) == []
        assert ledger(store) == []


class TestCosts:
    def test_a_promotion_that_meets_none_that_was_made_ahead_asks_nothing_more(self, store, monkeypatch):
        created_early(store)
        add(store, *[a_job(run_at=T0 + MINUTE - 1) for _ in range(9)])
        asked = []
        for name in ("find", "update_many", "bulk_write"):
            real = getattr(Collection, name)
            monkeypatch.setattr(
                Collection,
                name,
                lambda *args, real=real, **options: (asked.append(args[0].name), real(*args, **options))[1],
            )
        assert len(claim(store, 20, now=T0 + MINUTE - 1)) == 9
        name = documents(store).jobs.name
        assert asked == [name, name, documents(store).counters.name, name]  # found, made ready, counted; claimed

    @pytest.mark.parametrize("count", [1, 40])
    def test_notes_cost_no_round_trip_each(self, store, count):
        edits = [msgspec.structs.replace(new_schedule(f"s{n}"), audit=an_audit_record()) for n in range(count)]
        asked = _commands_of(store, lambda: store.edit_schedules(edits, now=T0))
        assert asked["update"] + asked["insert"] <= 6
        assert len(audit_records(store)) == count

    @pytest.mark.parametrize(
        ("where", "index"),
        [
            (ScheduleFilter(tenant="acme"), "tenant"),
            (ScheduleFilter(origin="code:shop"), "origin"),
            (ScheduleFilter(tenant="acme", origin="api:"), "tenant"),
            (ScheduleFilter(), "_id_"),
        ],
    )
    def test_a_list_of_schedules_goes_by_an_index(self, store, where, index):
        for number in range(30):
            add_schedule(store, f"s{number}", tenant="acme" if number == 7 else "")
        query, hint = schedules._conditions(where)
        found = documents(store).schedules.find({**query, "_id": {"$gt": ""}}, hint=hint).sort("_id", 1).explain()
        assert _index_of(found["queryPlanner"]["winningPlan"]) == index
        if where.tenant:
            assert found["executionStats"]["totalDocsExamined"] == 1

    def test_a_list_of_notes_goes_by_its_subject(self, store):
        store.add_audit_records([an_audit_record(subject=f"tenant:{number}", at=T0 + number) for number in range(30)])
        documents(store).database.command("profile", 2)
        try:
            store.list_audit_records(AuditFilter(subject="tenant:7", until=T0 + HOUR))
        finally:
            documents(store).database.command("profile", 0)
        name = f"{documents(store).database.name}.{documents(store).audit.name}"
        (asked,) = documents(store).database["system.profile"].find({"ns": name, "op": "query"})
        documents(store).database["system.profile"].drop()
        assert (asked["docsExamined"], asked.get("hasSortStage", False)) == (1, False)

    def test_what_was_skipped_goes_in_time(self, store):
        _, second, _ = created_early(store, overlap="skip")
        claim_one(store, now=T0 + MINUTE)
        claim(store, now=T0 + 2 * MINUTE)
        assert not is_kept(store, second.id)
        assert set(documents(store).jobs.find_one({"_id": second.id})) == {"_id", "schedule_id", "fire_at", "gone_at"}


def _commands_of(store, work):
    """How many commands of each kind the server worked on."""
    before = _commands(store)
    work()
    return _commands(store) - before


def _commands(store):
    store.now()
    metrics = store._connection.client.admin.command("serverStatus")["metrics"]["commands"]
    return Counter({name: metrics[name]["total"] for name in ("insert", "update")})


def _index_of(plan):
    while "indexName" not in plan:
        plan = plan["inputStage"]
    return plan["indexName"]
