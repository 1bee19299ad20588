"""Produce: record sets in, one outcome for each out, in the words of every version."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.api.produce import API, FIRST_WITH_LEADERS
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol import wire
from ottla.protocol.records.compression import Codec
from tests.fakes.api_side import ApiSide, api_side
from tests.fakes.data_side import ME, OTHER, TOPIC_ID, TP, values_of

BY_ID = 13


def fields(*sets: tuple[str, int, bytes | None], acks: int = 1, **more: Any) -> dict[str, Any]:
    """One topic for each set, by name and by id."""
    topics = [
        {
            "name": topic,
            "topic_id": more.get("topic_id", TOPIC_ID),
            "partition_data": [{"index": index, "records": records}],
        }
        for topic, index, records in sets
    ]
    return {"transactional_id": None, "acks": acks, "timeout": 1_000, "topic_data": topics}


def outcome(said: Any, at: int = 0) -> Any:
    return said.responses[at].partition_responses[0]


@pytest.mark.spec("WIRE-10", "WIRE-12", "WIRE-13", "WIRE-14")
@pytest.mark.parametrize("version", API.versions)
async def test_every_version_appends_and_answers_with_the_offset(version: int) -> None:
    async with api_side() as side:
        await side.data.lead()
        records = side.data.batch(b"a", b"b")
        for base in (0, 2):
            said = await side.caller.ask(API, version, **fields(("t", 0, records)))
            one = outcome(said)
            assert (one.error_code, one.base_offset) == (ErrorCode.none, base)
            if version >= 5:
                assert one.log_start_offset == 0
        assert values_of(await side.data.read()) == [b"a", b"b"] * 2
        topic = said.responses[0]
        assert topic.topic_id == TOPIC_ID if version >= BY_ID else topic.name == "t"


@pytest.mark.spec("WIRE-12")
async def test_every_set_has_its_own_outcome_in_the_order_asked() -> None:
    async with api_side() as side:
        await side.data.lead()
        await side.data.lead(TopicPartition("u", 3))
        records = side.data.batch(b"a")
        good, nowhere = ("t", 0, records), ("nowhere", 0, records)
        sets = fields(("u", 3, records), nowhere, ("t", 0, b"junk"), good)
        said = await side.caller.ask(API, 9, **sets)
        assert [outcome(said, at).error_code for at in range(4)] == [
            ErrorCode.none,
            ErrorCode.unknown_topic_or_partition,
            ErrorCode.invalid_record,
            ErrorCode.none,
        ]
        assert [topic.name for topic in said.responses] == ["u", "nowhere", "t", "t"]
        assert outcome(said).index == 3


async def test_a_batch_that_the_log_refuses_is_told_with_where_the_log_begins() -> None:
    async with api_side() as side:
        await side.data.lead()
        misplaced = bytearray(side.data.batch(b"a"))
        misplaced[:8] = (5).to_bytes(8, "big")
        said = await side.caller.ask(API, 9, **fields(("t", 0, bytes(misplaced))))
        assert outcome(said).error_code is ErrorCode.invalid_record
        assert outcome(said).log_start_offset == 0
        no_batch = await side.caller.ask(API, 9, **fields(("t", 0, b"junk")))
        assert outcome(no_batch).log_start_offset == -1


@pytest.mark.spec("WIRE-11", "REP-59")
@pytest.mark.parametrize("acks", [2, -2, 32_767])
async def test_other_acks_are_refused_for_every_set(acks: int) -> None:
    async with api_side() as side:
        partition = await side.data.lead()
        records = side.data.batch(b"a")
        said = await side.caller.ask(API, **fields(("t", 0, records), acks=acks))
        assert outcome(said).error_code is ErrorCode.invalid_required_acks
        assert partition.log.end_offset == 0


@pytest.mark.spec("WIRE-11")
async def test_with_acks_0_there_is_no_reply_and_an_error_ends_the_connection() -> None:
    async with api_side() as side:
        partition = await side.data.lead()
        good = fields(("t", 0, side.data.batch(b"a")), acks=0)
        assert await side.caller.start(API, **good) == b""
        assert side.caller.ended is None
        assert partition.log.end_offset == 1
        bad = fields(("t", 0, b"junk"), acks=0)
        assert await side.caller.start(API, **bad) == b""
        assert side.caller.ended == "Produce with acks=0 failed: invalid_record"


@pytest.mark.spec("WIRE-11", "DLY-28")
async def test_acks_all_is_answered_once_all_in_sync_have_it() -> None:
    async with api_side() as side:
        await side.data.lead(replicas=(ME, OTHER))
        sent = side.caller.start(API, **fields(("t", 0, side.data.batch(b"a")), acks=-1))
        assert not sent.done()
        side.data.start_fetch(1, replica_id=OTHER)
        assert sent.done()


async def test_an_unknown_topic_id_is_said() -> None:
    async with api_side() as side:
        await side.data.lead()
        records = side.data.batch(b"a")
        for unknown in (UUID(int=99), UUID(int=0)):
            asked = fields(("t", 0, records), topic_id=unknown)
            said = await side.caller.ask(API, BY_ID, **asked)
            assert outcome(said).error_code is ErrorCode.unknown_topic_id
            assert said.responses[0].topic_id in (unknown, None)


@pytest.mark.parametrize(("version", "code"), [(6, 76), (7, 0)])
async def test_zstd_needs_a_version_that_knows_it(version: int, code: int) -> None:
    async with api_side() as side:
        await side.data.lead()
        records = side.data.batch(b"a" * 100, codec=Codec.ZSTD)
        said = await side.caller.ask(API, version, **fields(("t", 0, records)))
        assert outcome(said).error_code == code


@pytest.mark.spec("WIRE-13")
async def test_the_append_time_is_told_where_the_topic_stamps_records() -> None:
    async with api_side({"log.message.timestamp.type": "LogAppendTime"}) as side:
        await side.data.lead()
        await side.data.until(5_000)
        said = await side.caller.ask(API, 9, **fields(("t", 0, side.data.batch(b"a"))))
        stamp = outcome(said).log_append_time
        assert round(stamp.timestamp() * 1000) == side.data.clock.wall_ms()


async def test_the_records_are_taken_before_the_receive_buffer_is_used_again() -> None:
    async def take(side: ApiSide, *, rewrites: bool) -> None:
        asked = fields(("t", 0, side.data.batch(b"kept")))
        frame = bytearray(wire.encode_request(API.key, 9, 1, "caller", asked))
        side.data.pool.held = rewrites
        sent = side.caller.send(frame)
        frame[:] = bytes(len(frame))
        side.data.pool.run_all()
        await sent
        at = side.data.hosted.get(TP).log.end_offset - 1
        assert values_of(await side.data.read(at)) == [b"kept"]

    async with api_side() as side:
        await side.data.lead()
        await take(side, rewrites=False)
        side.data.config.set_topic("t", {"compression.type": "gzip"})
        await take(side, rewrites=True)


async def test_a_broker_that_no_longer_leads_names_the_leader() -> None:
    async with api_side() as side:
        await side.data.lead()
        await side.data.follow(epoch=5)
        records = side.data.batch(b"a")
        for version in (FIRST_WITH_LEADERS - 1, FIRST_WITH_LEADERS, BY_ID):
            reply = await side.caller.ask(API, version, **fields(("t", 0, records)))
            refused = outcome(reply)
            assert refused.error_code is ErrorCode.not_leader_or_follower
            leader = refused.current_leader
            if version < FIRST_WITH_LEADERS:
                assert (leader.leader_id, reply.node_endpoints) == (-1, ())
                continue
            assert (leader.leader_id, leader.leader_epoch) == (OTHER, 5)
            assert [node.node_id for node in reply.node_endpoints] == [OTHER]
