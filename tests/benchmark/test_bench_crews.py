"""The pace of several processes counts from when the last of them has begun."""

import pytest
from bench.crews import RECORD, records_of, seconds_per_job

SECOND = 1_000_000_000


def test_what_one_process_did_alone_does_not_count():
    alone = [(1, number * SECOND) for number in range(1, 10)]
    together = [(2, 10 * SECOND), (1, 11 * SECOND), (2, 12 * SECOND), (1, 12 * SECOND), (2, 14 * SECOND)]
    assert seconds_per_job(alone + together, 2) == 1.0


def test_a_process_that_took_no_part_is_no_pace():
    with pytest.raises(AssertionError, match="1 processes took part"):
        seconds_per_job([(1, 1), (1, 2)], 2)


def test_a_process_that_came_last_of_all_is_no_pace():
    with pytest.raises(AssertionError, match="too late"):
        seconds_per_job([(1, 1), (2, 2)], 2)


def test_records_are_read_once_all_are_there(tmp_path):
    told = [(7, 100), (8, 200)]
    (tmp_path / "ran").write_bytes(b"".join(RECORD.pack(*record) for record in told))
    assert records_of(tmp_path / "ran", 2) == told
