"""What transactional producers may get wrong, and packets that come too late."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.bad_input.conftest import MakeTopic
from tests.bad_input.producers import (
    ADD_OFFSETS,
    FIND_COORDINATOR,
    TXN_OFFSET_COMMIT,
    VERSIONS,
    Who,
    add,
    begun,
    end,
    ended,
    init,
    opened,
    write,
)
from tests.fakes.committed_reader import committed_values
from tests.raw_requests import FETCH, Line, batch, fetch_fields, produced

E = ErrorCode
both_versions = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic()


def read(line: Line, topic: str) -> list[str]:
    """What counts in partition 0, once every marker is there."""
    fields = {**fetch_fields(topic), "isolation_level": 1}
    while True:
        [part] = line.ask(FETCH, 12, **fields).responses[0].partitions
        assert part.error_code is E.none
        if part.last_stable_offset == part.high_watermark:
            return [value.decode() for value in committed_values(part)]


# Packets that come late


@pytest.mark.spec("TXN-17", "TXN-40")
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_delayed_past_the_next_transaction_of_v2_is_refused(
    line: Line, topic: str, commit: bool
) -> None:
    """Were it carried out, it would end the next one, before its producer is done with it."""
    first = begun(line, 2)
    opened(line, first, topic, "first")
    second = ended(line, first)
    opened(line, second, topic, "second")
    assert end(line, first, commit=commit).error_code is E.producer_fenced
    assert write(line, second, topic, "and more", 1) is E.none
    ended(line, second, commit=not commit)
    assert read(line, topic) == (["first"] if commit else ["first", "second", "and more"])


@pytest.mark.spec("TXN-07", "TXN-17")
def test_records_delayed_past_the_next_transaction_of_v2_are_refused(
    line: Line, topic: str
) -> None:
    first = begun(line, 2)
    opened(line, first, topic, "first")
    second = ended(line, first, commit=False)
    assert write(line, first, topic, "late", 1) is E.invalid_producer_epoch  # before it
    opened(line, second, topic, "second")
    assert write(line, first, topic, "late", 1) is E.invalid_producer_epoch  # within it
    third = ended(line, second)
    assert write(line, first, topic, "late", 1) is E.invalid_producer_epoch  # after it
    assert write(line, second, topic, "late", 1) is E.invalid_producer_epoch
    assert read(line, topic) == ["second"]
    opened(line, third, topic, "third")
    ended(line, third)
    assert read(line, topic) == ["second", "third"]


@both_versions
@pytest.mark.spec("TXN-17", "TXN-29")
def test_what_a_replaced_producer_says_late_is_refused(
    line: Line, topic: str, version: int
) -> None:
    """v1 keeps an epoch for a producer's whole life: a new life is what its packets cannot pass."""
    older = begun(line, version)
    opened(line, older, topic, "aborted by its successor")
    newer = begun(line, version, older.id)
    opened(line, newer, topic, "kept")
    assert end(line, older).error_code is E.producer_fenced
    assert end(line, older, commit=False).error_code is E.producer_fenced
    assert write(line, older, topic, "late", 1) is E.invalid_producer_epoch
    assert add(line, older, topic) is E.producer_fenced
    assert offsets_added(line, older) is E.producer_fenced
    assert offset_committed(line, older, topic) is E.invalid_producer_epoch
    ended(line, newer)
    assert end(line, older).error_code is E.producer_fenced
    assert read(line, topic) == ["kept"]


@pytest.mark.spec("TXN-34", "TXN-40")
def test_records_of_v1_that_come_after_their_end_are_refused_or_known(
    line: Line, topic: str
) -> None:
    """Its epoch does not tell transactions apart; sequences, and what was added, do."""
    me = begun(line, 1)
    opened(line, me, topic, "first")
    ended(line, me)
    assert write(line, me, topic, "late", 1) is E.transaction_abortable  # in no transaction
    assert add(line, me, topic) is E.none
    assert write(line, me, topic, "first", 0) is E.none  # again: not written twice
    assert write(line, me, topic, "late", 7) is E.out_of_order_sequence_number
    assert write(line, me, topic, "second", 1) is E.none
    ended(line, me)
    assert read(line, topic) == ["first", "second"]


def offsets_added(line: Line, who: Who) -> ErrorCode:
    code: ErrorCode = line.ask(
        ADD_OFFSETS, 3, transactional_id=who.id, producer_id=who.producer_id,
        producer_epoch=who.epoch, group_id="g",
    ).error_code  # fmt: skip
    return code


def offset_committed(line: Line, who: Who, topic: str, **more: Any) -> ErrorCode:
    """Of partition 0 of a topic, in a transaction that its group has been added to if v1."""
    partition = {
        "partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1,
        "committed_metadata": None,
    }  # fmt: skip
    fields: dict[str, Any] = {
        "transactional_id": who.id,
        "group_id": "g",
        "producer_id": who.producer_id,
        "producer_epoch": who.epoch,
        "generation_id": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": topic, "partitions": [{**partition, **more.pop("partition", {})}]}],
    }
    version = 4 if who.version == 1 else 5
    reply = line.ask(TXN_OFFSET_COMMIT, version, **{**fields, **more})
    code: ErrorCode = reply.topics[0].partitions[0].error_code
    return code


# What a producer asks


@pytest.mark.parametrize("version", range(0, 7))
def test_an_empty_transactional_id_is_refused(line: Line, version: int) -> None:
    assert init(line, "", version).error_code is E.invalid_request


@pytest.mark.spec("TXN-29")
def test_two_phase_commit_is_refused_where_a_setting_says_so() -> None:
    """As Kafka refuses it to who has not been given it."""
    settings = {"transaction.two.phase.commit.enable": "false"}
    with Broker(settings) as broker, Line(broker.bootstrap_servers) as line:
        begun(line, 2, "id")
        for kept in (True, False):
            said = init(line, "id", enable2_pc=True, keep_prepared_txn=kept)
            assert said.error_code is E.transactional_id_authorization_failed
            assert (said.producer_id, said.producer_epoch) == (-1, -1)
        assert init(line, "id", enable2_pc=False).error_code is E.none


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31), 900_001, 2**31 - 1])
def test_a_transaction_timeout_that_cannot_be_is_refused(line: Line, timeout_ms: int) -> None:
    begun(line, 1, "timely")
    said = init(line, "timely", transaction_timeout=timeout_ms)
    assert said.error_code is E.invalid_transaction_timeout


@pytest.mark.parametrize(
    ("producer_id", "epoch", "code"),
    [
        (5, -1, E.invalid_request),
        (-1, 5, E.invalid_request),
        (987_654_321, 0, E.producer_fenced),
    ],
)
def test_who_claims_to_be_another_producer_is_not(
    line: Line, producer_id: int, epoch: int, code: ErrorCode
) -> None:
    begun(line, 1, "claimed")
    said = init(line, "claimed", producer_id=producer_id, producer_epoch=epoch)
    assert said.error_code is code
    assert (said.producer_id, said.producer_epoch) == (-1, -1)


@both_versions
def test_an_end_that_makes_no_sense_is_refused(line: Line, topic: str, version: int) -> None:
    me = begun(line, version)
    assert end(line, me).error_code is E.invalid_txn_state  # nothing is open
    opened(line, me, topic, "x")
    other = me._replace(producer_id=me.producer_id + 1_000_000)
    assert end(line, other).error_code is E.invalid_producer_id_mapping
    for epoch in (me.epoch - 1, me.epoch + 1, -1, 2**15 - 1):
        assert end(line, me._replace(epoch=epoch)).error_code is E.producer_fenced
    assert end(line, me._replace(id="nobody-ever")).error_code is E.invalid_producer_id_mapping
    assert end(line, me._replace(id="")).error_code is E.invalid_request
    ended(line, me)
    assert read(line, topic) == ["x"]


@pytest.mark.spec("TXN-34")
def test_a_transactional_batch_for_a_partition_that_was_not_added_is_refused(
    line: Line, make_topic: MakeTopic
) -> None:
    added, left_out = make_topic(), make_topic()
    me = begun(line, 1)
    opened(line, me, added, "x")
    assert write(line, me, left_out, "y") is E.transaction_abortable
    ended(line, me, commit=False)
    assert read(line, left_out) == read(line, added) == []


@pytest.mark.spec("TXN-34")
def test_a_transactional_batch_without_its_id_or_of_another_is_refused(
    line: Line, topic: str
) -> None:
    me, stranger = begun(line, 1), begun(line, 1)
    assert add(line, me, topic) is E.none
    assert write(line, me._replace(id=stranger.id), topic, "y") is E.invalid_producer_id_mapping
    opened(line, me, topic, "x")
    bare = batch(
        "z", producer_id=stranger.producer_id, producer_epoch=0, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    assert produced(line, topic, bare).error_code is not E.none
    ended(line, me)
    assert read(line, topic) == ["x"]


def test_a_partition_that_is_not_there_joins_no_transaction(line: Line, topic: str) -> None:
    me = begun(line, 1)
    assert add(line, me, "no-such-topic") is E.unknown_topic_or_partition
    assert end(line, me).error_code is E.invalid_txn_state


@pytest.mark.spec("GRP-66")
@both_versions
def test_offsets_in_a_transaction_are_refused_like_any(
    line: Line, topic: str, version: int
) -> None:
    me = begun(line, version)
    while line.ask(FIND_COORDINATOR, 0, key="g").error_code is not E.none:
        pass  # the topic is being made
    if version == 1:
        assert offsets_added(line, me) is E.none
    long = {"committed_metadata": "m" * 4097}
    assert offset_committed(line, me, topic, partition=long) is E.offset_metadata_too_large
    assert offset_committed(line, me, topic, group_id="") is E.invalid_group_id
    assert offset_committed(line, me, topic, generation_id=3, member_id="x") is not E.none
    assert offset_committed(line, me, topic) is E.none
    ended(line, me)
