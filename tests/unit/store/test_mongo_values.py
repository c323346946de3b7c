"""The MongoDB store's pure parts: versions, names, faults in words, documents, and what a change writes."""

from __future__ import annotations

import msgspec
import pytest
from pymongo.errors import (
    AutoReconnect,
    ConfigurationError,
    ExecutionTimeout,
    InvalidURI,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    ServerSelectionTimeoutError,
    WTimeoutError,
)

from rota.errors import BadStoreUrl, SchemaMismatch, StoreError, StoreUnavailable
from rota.model.jobs.job import Job, NewJob, State, accept
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import claim, settle
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import LastRun, Origin, Pause, Schedule, ScheduleSpec
from rota.store.contract import JobFilter
from rota.store.mongo.codec import (
    document_of_job,
    document_of_last,
    document_of_schedule,
    job_of,
    position_of,
    schedule_of,
    update_of,
)
from rota.store.mongo.connection import Connection
from rota.store.mongo.faults import translate
from rota.store.mongo.listing import conditions
from rota.store.mongo.schema import check_server, scripts
from rota.store.shared.ledger import join

T0 = 1_767_225_600_000_000
FULL = Job(
    id="id",
    seq=7,
    task="mail.send",
    payload=b"\x00",
    state=State.RUNNING,
    queue="mail",
    priority=-3,
    created_at=T0,
    run_at=T0 + 1,
    key="key",
    key_until=T0 + 2,
    schedule_id="tick",
    fire_at=T0,
    after_at=T0 - 1,
    generation=4,
    made_by="cron",
    waits_for="other",
    queued_at=T0 + 3,
    started_at=T0 + 4,
    finished_at=None,
    attempts=1,
    failures=2,
    deaths=3,
    lease_no=5,
    holder="worker",
    lease_until=T0 + 5,
    cancel_reason="enough",
    error="boom",
    result=b"1",
    past=b"[]",
    progress="3/10",
)


class TestServerVersions:
    @pytest.mark.parametrize("version", [[5, 0, 0, 0], [6, 0, 5], [7, 0], [10, 1, 2]])
    def test_later_ones_are_taken(self, version):
        check_server(version)

    @pytest.mark.parametrize("version", [[4, 4, 29, 0], [3, 6, 0], [4, 9]])
    def test_earlier_ones_are_refused_with_what_is_needed(self, version):
        with pytest.raises(SchemaMismatch, match=r"needs 5\.0 or later"):
            check_server(version)


class TestNames:
    def test_what_a_migration_would_do_names_the_namespace(self):
        (script,) = scripts("mine")
        assert "db.mine_job.createIndex" in script

    @pytest.mark.parametrize("url", ["mongodb://ann:geheim@db.example:27017/jobs?authSource=admin"])
    def test_where_it_is_tells_no_secret(self, url):
        where = Connection(url, "rota").where
        assert where == "mongodb database jobs at db.example:27017"


class TestFaultsInWords:
    @pytest.mark.parametrize(
        "err",
        [
            AutoReconnect("connection closed"),
            NetworkTimeout("timed out"),
            ServerSelectionTimeoutError("nobody there, Timeout: 5s, Topology Description: …"),
            NotPrimaryError("not primary"),
            ExecutionTimeout("operation exceeded time limit", 50),
            WTimeoutError("waiting for replication timed out", 64),
            OperationFailure("interrupted at shutdown", 11600),
            OperationFailure("write conflict", 112),
            OperationFailure("no space", 14031),
        ],
        ids=lambda err: type(err).__name__,
    )
    def test_what_passes_is_worth_another_try(self, err):
        assert isinstance(translate(err, "mongodb database x"), StoreUnavailable)

    @pytest.mark.parametrize(
        "err", [InvalidURI("bad"), ConfigurationError("no such option"), OperationFailure("Authentication failed.", 18)]
    )
    def test_what_the_url_is_to_blame_for_is_told_so(self, err):
        assert isinstance(translate(err, "mongodb database x"), BadStoreUrl)

    def test_missing_rights_name_the_role(self):
        told = translate(OperationFailure("not authorized on rota", 13), "mongodb database x")
        assert "readWrite" in str(told)

    def test_anything_else_is_a_fault_of_the_store(self):
        told = translate(OperationFailure("odd", 2), "mongodb database x")
        assert type(told) is StoreError

    def test_the_whole_topology_is_left_out(self):
        err = ServerSelectionTimeoutError("refused, Timeout: 5s, Topology Description: <many lines>")
        assert "Topology" not in str(translate(err, "x"))


class TestDocuments:
    def test_a_full_job_comes_back_whole(self):
        assert job_of(document_of_job(FULL)) == FULL

    def test_a_plain_job_comes_back_whole_and_leaves_out_what_it_has_not(self):
        job = accept(NewJob(id="a", task="t", payload=b"[]"), T0, 1)
        document = document_of_job(job)
        assert job_of(document) == job
        assert not {"key", "schedule_id", "lease_until", "finished_at", "past"} & document.keys()

    @pytest.mark.parametrize(
        "spoiled", [{"payload": "text"}, {"state": "odd"}, {"priority": None}, {"created_at": "now"}, {"task": 7}]
    )
    def test_a_job_that_cannot_be_read_says_why(self, spoiled):
        job = job_of({**document_of_job(FULL), **spoiled})
        assert (job.id, job.state) == ("id", State.FAILED)
        assert "cannot be read" in (job.error or "")

    def test_a_document_of_nothing_is_shown_too(self):
        assert job_of({"_id": 7}).id == "7"

    def test_a_full_schedule_comes_back_whole(self):
        schedule = Schedule(
            id="tick",
            spec=ScheduleSpec(trigger="every 1m", task="t", description="Zürich"),
            origin=Origin("code", "shop", "1.2"),
            version=3,
            generation=2,
            created_at=T0,
            updated_at=T0 + 1,
            is_enabled=False,
            pause=Pause(T0, "rest", "ann", T0 + 9),
            next_at=T0 + 5,
            fired_through=T0 + 4,
            run_count=6,
            last=LastRun(enqueued_at=T0, status="succeeded"),
            problem="odd",
        )
        fields = {name: value for name, value in document_of_schedule(schedule).items() if value is not None}
        assert schedule_of({"_id": "tick", **fields, "last": document_of_last(schedule.last)}) == schedule

    @pytest.mark.parametrize("spoiled", [{"spec": "{"}, {"version": "x"}, {"pause": 3}, {"last": 3}, {"origin": None}])
    def test_a_schedule_that_cannot_be_read_says_why(self, spoiled):
        fresh = Schedule(
            id="t", spec=ScheduleSpec(trigger="every 1m", task="t"), created_at=T0, updated_at=T0, fired_through=T0
        )
        fields = {name: value for name, value in document_of_schedule(fresh).items() if value is not None}
        schedule = schedule_of({"_id": "t", **fields, **spoiled})
        assert "cannot be read" in (schedule.problem or "")
        assert schedule.due_at is None


class TestWhatAChangeWrites:
    def test_a_success_writes_its_end_and_no_more(self):
        job = claim(accept(NewJob(id="a", task="t", payload=b""), T0, 1), "w", T0, T0 + 9)
        update = update_of([settle(job, Succeeded(), RetryPolicy(), T0 + 1, 0.0)], "token")
        assert update == {
            "$set": {"state": "succeeded", "token": "token", "holder": "w", "finished_at": T0 + 1, "attempts": 1},
            "$unset": {"lease_until": ""},  # a cancel that came too late stays: the history names it
        }

    def test_a_retry_gives_up_holder_and_start(self):
        job = claim(accept(NewJob(id="a", task="t", payload=b""), T0, 1), "w", T0, T0 + 9)
        update = update_of([settle(job, Failed("boom"), RetryPolicy(retries=1), T0 + 1, 0.0)], "token")
        assert {"holder", "started_at", "lease_until"} <= update["$unset"].keys()
        assert update["$set"]["state"] == "scheduled"


class TestFilters:
    def test_a_star_is_a_range_and_never_a_pattern(self):
        assert conditions(JobFilter(task="mail.*"), None)["task"] == {"$gte": "mail.", "$lt": "mail.\U0010ffff"}

    def test_a_cursor_goes_on_below_it(self):
        assert conditions(JobFilter(), "17")["seq"]["$lt"] == position_of(17)


def line(after: int, through: int, outcome: str = "succeeded") -> Occurrence:
    return Occurrence(schedule_id="t", after_at=after, through_at=through, count=through - after, outcome=outcome)


class TestJoiningLines:
    def test_neighbours_become_one_range_in_whatever_order_they_come(self):
        lines: list[Occurrence] = []
        for new in (line(2, 3), line(0, 1), line(1, 2)):
            join(lines, new)
        assert lines == [line(0, 3)]

    def test_a_line_that_is_covered_changes_nothing(self):
        lines = [line(0, 3)]
        join(lines, msgspec.structs.replace(line(1, 2), job_id="again"))
        assert lines == [line(0, 3)]

    def test_other_outcomes_stay_apart_and_in_order(self):
        lines = [line(0, 1), line(2, 3)]
        join(lines, line(1, 2, "failed"))
        assert lines == [line(0, 1), line(1, 2, "failed"), line(2, 3)]
