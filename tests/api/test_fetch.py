"""Fetch: records out, by name and by id, in sessions and without."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.api.fetch import API, FIRST_WITH_LEADERS, LED_ELSEWHERE
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.records.batch import walk
from ottla.protocol.records.record import read_records
from tests.fakes.api_side import ApiSide, Caller, api_side
from tests.fakes.data_side import ME, OTHER, TOPIC_ID

TWO = (ME, OTHER)
IN_CLUSTER = {"zookeeper.connect": "zk:2181"}
BY_ID, WITH_SESSIONS, WITH_EPOCHS = 13, 7, 9


def part(offset: int, index: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "partition": index,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
        **more,
    }


def fields(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    replica = more.pop("replica_id", -1)
    topic = {"topic": more.pop("topic", "t"), "topic_id": more.pop("topic_id", TOPIC_ID)}
    return {
        "replica_id": replica,
        "replica_state": {"replica_id": replica, "replica_epoch": -1},
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{**topic, "partitions": list(parts)}] if parts else [],
        "forgotten_topics_data": [],
        "rack_id": "",
        **more,
    }


def only(said: Any) -> Any:
    return said.responses[0].partitions[0]


def values(one: Any) -> list[bytes | None]:
    view = memoryview(one.records or b"")
    return [
        record.value
        for at, header in walk(view)
        for record in read_records(view[at : at + header.size])
    ]


async def fill(side: ApiSide, count: int = 2) -> None:
    for index in range(count):
        await side.data.append(b"%d" % index)


@pytest.mark.spec("WIRE-15", "WIRE-16", "WIRE-18", "WIRE-19")
@pytest.mark.parametrize("version", API.versions)
async def test_every_version_reads(version: int) -> None:
    async with api_side() as side:
        await side.data.lead()
        await fill(side)
        said = await side.caller.ask(API, version, **fields(part(0)))
        one = only(said)
        assert (one.error_code, one.high_watermark) == (ErrorCode.none, 2)
        assert values(one) == [b"0", b"1"]
        if version >= 11:
            assert one.preferred_read_replica == -1
        topic = said.responses[0]
        assert topic.topic_id == TOPIC_ID if version >= BY_ID else topic.topic == "t"


@pytest.mark.spec("WIRE-16")
async def test_the_leader_epoch_of_newer_versions_is_checked() -> None:
    async with api_side() as side:
        await side.data.lead(epoch=3)
        for version, code in ((8, ErrorCode.none), (9, ErrorCode.fenced_leader_epoch)):
            asked = fields(part(0, current_leader_epoch=2))
            said = await side.caller.ask(API, version, **asked)
            assert only(said).error_code is code


async def test_an_empty_name_is_an_unknown_topic_and_not_an_unknown_id() -> None:
    async with api_side() as side:
        await side.data.lead()
        asked = fields(part(0))
        asked["topics"][0]["topic"] = ""
        said = await side.caller.ask(API, 12, **asked)
        assert only(said).error_code is ErrorCode.unknown_topic_or_partition


async def test_a_topic_is_found_by_its_id_and_no_other() -> None:
    async with api_side() as side:
        await side.data.lead()
        asked = fields(part(0), topic_id=UUID(int=99))
        said = await side.caller.ask(API, **asked)
        assert only(said).error_code is ErrorCode.unknown_topic_id
        assert said.responses[0].topic_id == UUID(int=99)
        assert only(said).aborted_transactions == ()


@pytest.mark.spec("WIRE-15", "DLY-29")
async def test_a_fetch_waits_as_long_as_it_says_or_until_there_is_enough() -> None:
    async with api_side() as side:
        await side.data.lead()
        parked = side.caller.start(API, **fields(part(0), max_wait=5_000))
        await side.data.until(300)
        assert not parked.done()
        await fill(side, 1)
        await parked
        assert side.data.clock.mono_ms() == 300
        await side.caller.ask(API, **fields(part(1), max_wait=5_000))
        assert side.data.clock.mono_ms() == 5_300


async def test_no_fetch_waits_longer_than_five_minutes() -> None:
    async with api_side() as side:
        await side.data.lead()
        said = await side.caller.ask(API, **fields(part(0), max_wait=2**31 - 1))
        assert only(said).error_code is ErrorCode.none
        assert side.data.clock.mono_ms() == 300_000


async def test_one_reply_carries_no_more_than_the_broker_allows() -> None:
    async with api_side({"fetch.max.bytes": "1024"}) as side:
        await side.data.lead()
        for _ in range(5):
            await side.data.append(bytes(400))
        said = await side.caller.ask(API, **fields(part(0)))
        assert len(only(said).records) == 1_024


@pytest.mark.spec("WIRE-20", "WIRE-21")
async def test_read_committed_is_told_of_aborted_transactions() -> None:
    async with api_side() as side:
        await side.data.lead()
        await fill(side, 1)
        said = await side.caller.ask(API, **fields(part(0), isolation_level=1))
        assert only(said).aborted_transactions == ()
        said = await side.caller.ask(API, **fields(part(0)))
        assert only(said).aborted_transactions is None


# Sessions


async def opened(caller: Caller, *parts: dict[str, Any], version: int = -1) -> int:
    said = await caller.ask(API, version, **fields(*parts, session_epoch=0))
    assert said.error_code is ErrorCode.none
    assert said.session_id > 0
    return int(said.session_id)


def indexes(said: Any) -> list[int]:
    return [one.partition_index for topic in said.responses for one in topic.partitions]


@pytest.mark.spec("WIRE-22", "WIRE-23", "WIRE-24", "WIRE-25", "WIRE-27")
@pytest.mark.parametrize("version", [WITH_SESSIONS, 12, BY_ID, 18])
async def test_a_session_says_only_what_has_changed(version: int) -> None:
    async def ask(
        caller: Caller, version: int, session: int, epoch: int, *parts: dict[str, Any]
    ) -> Any:
        asked = fields(*parts, session_id=session, session_epoch=epoch)
        return await caller.ask(API, version, **asked)

    async with api_side() as side:
        for index in range(3):
            await side.data.lead(TopicPartition("t", index))
        session = await opened(side.caller, *(part(0, i) for i in range(3)), version=version)
        said = await ask(side.caller, version, session, 1)
        assert indexes(said) == []
        await side.data.append(b"x", key=TopicPartition("t", 1))
        said = await ask(side.caller, version, session, 2)
        assert indexes(said) == [1]
        assert values(only(said)) == [b"x"]
        said = await ask(side.caller, version, session, 3, part(1, 1))
        assert indexes(said) == []


@pytest.mark.spec("WIRE-17", "WIRE-26", "WIRE-25")
async def test_partitions_are_forgotten_and_wrong_sessions_refused() -> None:
    async with api_side() as side:
        for index in range(2):
            await side.data.lead(TopicPartition("t", index))
        session = await opened(side.caller, part(0, 0), part(0, 1))
        forgotten = [{"topic": "t", "topic_id": TOPIC_ID, "partitions": [0]}]
        asked = fields(session_id=session, session_epoch=1, forgotten_topics_data=forgotten)
        await side.caller.ask(API, **asked)
        assert side.data.services.sessions.partitions == 1
        again = await side.caller.ask(API, **fields(session_id=session, session_epoch=1))
        assert again.error_code is ErrorCode.invalid_fetch_session_epoch
        other = await side.caller.ask(API, **fields(session_id=session + 1, session_epoch=2))
        assert other.error_code is ErrorCode.fetch_session_id_not_found
        old = await side.caller.ask(API, 12, **fields(session_id=session, session_epoch=2))
        assert old.error_code is ErrorCode.fetch_session_topic_id_error
        await side.caller.ask(API, **fields(session_id=session, session_epoch=-1))
        assert len(side.data.services.sessions) == 0


async def test_a_topic_that_becomes_known_is_read_in_the_session_that_asked_too_early() -> None:
    async with api_side() as side:
        said = await side.caller.ask(API, **fields(part(0), session_epoch=0))
        assert only(said).error_code is ErrorCode.unknown_topic_id
        await side.data.lead()
        await fill(side, 1)
        asked = fields(session_id=said.session_id, session_epoch=1)
        said = await side.caller.ask(API, **asked)
        assert values(only(said)) == [b"0"]


async def test_who_hung_up_while_waiting_leaves_no_session_behind() -> None:
    async with api_side() as side:
        await side.data.lead()
        side.caller.start(API, **fields(part(0), session_epoch=0, max_wait=500))
        side.caller.closed = True
        await side.data.until(1_000)
        assert len(side.data.services.sessions) == 0


# Followers


@pytest.mark.spec("WIRE-28", "REP-61", "REP-63")
@pytest.mark.parametrize("version", [4, 14, 15, 18])
async def test_a_follower_reads_to_the_end_and_is_counted(version: int) -> None:
    async with api_side(IN_CLUSTER) as side:
        partition = await side.data.lead(replicas=TWO)
        await fill(side)
        said = await side.caller.ask(API, version, **fields(part(0), replica_id=OTHER))
        assert values(only(said)) == [b"0", b"1"]
        assert partition.log.high_watermark == 0
        await side.caller.ask(API, version, **fields(part(2), replica_id=OTHER))
        assert partition.log.high_watermark == 2


@pytest.mark.parametrize(("replica", "expected"), [(OTHER, 1), (-1, 0)])
async def test_the_connection_of_a_follower_is_made_ready_for_large_replies(
    replica: int, expected: int
) -> None:
    async with api_side(IN_CLUSTER) as side:
        await side.data.lead(replicas=TWO)
        calls: list[None] = []
        side.caller.peer.on_large_replies = lambda: calls.append(None)
        await side.caller.ask(API, **fields(part(0), replica_id=replica))
        assert len(calls) == expected


async def test_who_claims_to_be_a_follower_on_a_clients_listener_is_refused() -> None:
    settings = {
        "listeners": "PLAINTEXT://:9092,OUTSIDE://:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        **IN_CLUSTER,
    }
    async with api_side(settings) as side:
        partition = await side.data.lead(replicas=TWO)
        await fill(side)
        asked = fields(part(2), replica_id=OTHER)
        said = await side.another("OUTSIDE").ask(API, **asked)
        assert only(said).error_code is ErrorCode.topic_authorization_failed
        assert partition.log.high_watermark == 0
        await side.another("PLAINTEXT").ask(API, **asked)
        assert partition.log.high_watermark == 2


@pytest.mark.spec("WIRE-28")
async def test_who_only_claims_to_be_a_follower_takes_nobodys_session() -> None:
    """It would outrank a consumer's, and end any whose number it guesses."""
    settings = {
        "listeners": "PLAINTEXT://:9092,OUTSIDE://:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "max.incremental.fetch.session.cache.slots": "1",
    }
    async with api_side(settings) as side:
        await side.data.lead()
        side.services.replicas.sessions.slots = 1
        first = await side.caller.ask(API, **fields(part(0), session_epoch=0))
        assert first.session_id
        forger = side.another("OUTSIDE")
        for ask in (
            {"session_epoch": 0},
            {"session_epoch": 0, "session_id": first.session_id},
            {"session_epoch": -1, "session_id": first.session_id},
            {"session_epoch": 1, "session_id": first.session_id},
        ):
            said = await forger.ask(API, **fields(part(0), replica_id=OTHER, **ask))
            assert (said.session_id, said.error_code) == (0, ErrorCode.none)
            assert only(said).error_code is ErrorCode.topic_authorization_failed
        asked = fields(session_id=first.session_id, session_epoch=1)
        again = await side.caller.ask(API, **asked)
        assert (again.session_id, again.error_code) == (first.session_id, ErrorCode.none)


@pytest.mark.parametrize("epoch", [-1, 2])
async def test_a_broker_that_no_longer_leads_names_the_leader(epoch: int) -> None:
    async with api_side() as side:
        await side.data.lead()
        await side.data.follow(epoch=5)
        for version in (FIRST_WITH_LEADERS - 1, FIRST_WITH_LEADERS):
            request = fields(part(0, current_leader_epoch=epoch))
            reply = await side.caller.ask(API, version, **request)
            refused = only(reply)
            assert refused.error_code in LED_ELSEWHERE
            leader = refused.current_leader
            if version < FIRST_WITH_LEADERS:
                assert (leader.leader_id, reply.node_endpoints) == (-1, ())
                continue
            assert (leader.leader_id, leader.leader_epoch) == (OTHER, 5)
            assert [node.node_id for node in reply.node_endpoints] == [OTHER]
