from __future__ import annotations

import gc

import pytest

from ottla.client.consumer.record import Record, make_records

ROW = ("t", 3, 7, 1_700, 0, b"k", b"v", (("h", b"1"),), 2)


@pytest.mark.spec("CON-08")
def test_records_made_in_bulk_are_records_like_any_other() -> None:
    (record,) = make_records([ROW])
    assert record == Record(*ROW)
    assert type(record) is Record
    assert (record.topic, record.key, record.leader_epoch) == ("t", b"k", 2)
    assert record._replace(value=None).value is None


def test_the_garbage_collector_goes_on_as_before() -> None:
    assert gc.isenabled()
    make_records([ROW])
    with pytest.raises(ZeroDivisionError):
        make_records((*ROW[:at], 1 // at) for at in (1, 0))
    assert gc.isenabled()
    gc.disable()
    try:
        make_records([ROW])
        assert not gc.isenabled(), "a user who has turned it off wants it off"
    finally:
        gc.enable()
