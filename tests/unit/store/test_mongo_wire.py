"""The wire: messages as the server reads them, and what it says as the driver would tell it."""

import bson
import pytest
from bson.timestamp import Timestamp
from pymongo.errors import BulkWriteError, OperationFailure, WriteConcernError

from rota.model.job import NewJob, accept
from rota.store.mongo.adding import Encoder
from rota.store.mongo.documents import document_of_new, job_of
from rota.store.mongo.places import UNPLACED, before, beyond, place_of, seq_of, up_to
from rota.store.mongo.wire import check, number_of

AT = 1_794_758_834_241_000
PLACE = Timestamp(1_794_758_834, 7)


class TestDocuments:
    @pytest.mark.parametrize(
        "new",
        [
            NewJob(id="a" * 28, task="noop", payload=b"[]"),
            NewJob(id="ü", task="täsk", payload=b"", queue="mail", priority=-7),
            NewJob(id="b", task="t", payload=bytes(range(256)) * 300, priority=2),
        ],
    )
    def test_a_plain_job_is_written_as_any_other(self, new):
        (row,) = Encoder().documents([new], AT)
        assert bson.decode(row) == document_of_new(accept(new, AT))

    def test_jobs_of_many_kinds_keep_their_order_and_their_time(self):
        encoder = Encoder()
        for at in (AT, AT + 1_000):
            jobs = [NewJob(id=str(n), task=f"t{n % 300}", payload=b"x", priority=n % 3) for n in range(1_000)]
            rows = [bson.decode(row) for row in encoder.documents(jobs, at)]
            assert rows == [document_of_new(accept(new, at)) for new in jobs]


class TestPlaces:
    def test_the_server_gives_the_place(self):
        assert document_of_new(accept(NewJob(id="a", task="t", payload=b""), AT, 17))["seq"] == UNPLACED

    def test_a_place_is_a_number_and_back(self):
        assert place_of(seq_of(PLACE)) == PLACE
        assert (seq_of(17), place_of(17)) == (17, 17)

    def test_a_job_has_its_place_as_a_number(self):
        document = document_of_new(accept(NewJob(id="a", task="t", payload=b""), AT))
        assert job_of({**document, "seq": PLACE}).seq == seq_of(PLACE)

    def test_later_places_are_higher_and_those_of_the_first_version_lowest(self):
        later = [17, seq_of(PLACE), seq_of(Timestamp(PLACE.time, PLACE.inc + 1)), seq_of(Timestamp(PLACE.time + 1, 1))]
        assert later == sorted(set(later))

    def test_conditions_on_timestamps_hold_for_numbers_of_the_first_version(self):
        seq = seq_of(PLACE)
        assert (before(seq), up_to(seq)) == ({"$not": {"$gte": PLACE}}, {"$not": {"$gt": PLACE}})
        assert beyond(17) == {"$not": {"$lte": 17}}

    def test_conditions_on_those_numbers_hold_for_no_timestamp_before(self):
        assert (before(17), up_to(17)) == ({"$lt": 17}, {"$lte": 17})
        assert beyond(seq_of(PLACE)) == {"$gt": PLACE}


class TestAnswers:
    def test_a_command_that_failed_is_told(self):
        with pytest.raises(OperationFailure, match="no such thing") as caught:
            check({"ok": 0.0, "errmsg": "no such thing", "code": 26})
        assert caught.value.code == 26

    def test_a_majority_that_was_not_reached_is_told(self):
        with pytest.raises(WriteConcernError):
            check({"ok": 1.0, "n": 1, "writeConcernError": {"code": 64, "errmsg": "waited in vain"}})

    def test_a_part_of_an_update_that_failed_is_told(self):
        with pytest.raises(BulkWriteError):
            number_of({"ok": 1.0, "n": 0, "writeErrors": [{"index": 0, "code": 2, "errmsg": "bad"}]})

    def test_what_went_well_is_counted(self):
        check({"ok": 1.0, "n": 3})
        assert number_of({"ok": 1.0, "n": 3}) == 3
