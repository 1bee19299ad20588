"""From a frame to a reply: order, refusals, and what nobody foresaw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from ottla import api as apis
from ottla.api import api_versions, delete_groups, describe_cluster, list_offsets, produce
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.dispatch import Dispatch
from ottla.api.interbroker import stop_replica
from ottla.api.services import Services
from ottla.model.errors import Disconnect, ErrorCode, KafkaError
from ottla.net.admission import Admission
from ottla.net.request_slot import RequestSlot
from ottla.protocol import wire
from ottla.protocol.wire import Call
from ottla.store.port import SessionExpired, StoreUnavailable
from tests.fakes.api_side import ApiSide, Caller, api_side
from tests.fakes.data_side import TP
from tests.fakes.inline_pool import InlinePool
from tests.raw_requests import batch

KEY = describe_cluster.API.key
ASK: dict[str, Any] = {
    "include_cluster_authorized_operations": False,
    "endpoint_type": 1,
    "include_fenced_brokers": False,
}


def answering(api: Api, handler: Any) -> dict[int, Api]:
    return {**apis.BY_KEY, api.key: replace(api, handler=handler)}


def caller_of(side: ApiSide, table: dict[int, Api], tasks: asyncio.TaskGroup) -> Caller:
    return Caller(Dispatch(side.services, tasks.create_task, table))


def frame(api: Api, version: int = -1, number: int = 1, **fields: Any) -> bytes:
    version = api.versions[version] if version < 0 else version
    return wire.encode_request(api.key, version, number, "caller", fields)


async def test_what_is_not_offered_closes_the_connection_and_says_which() -> None:
    async with api_side() as side:
        unknown = bytearray(frame(describe_cluster.API, **ASK))
        unknown[4:6] = (999).to_bytes(2, "big")
        assert await side.caller.send(bytes(unknown)) == b""
        assert side.caller.ended == "unsupported version 2 of api key 999"
        newer = side.another()
        late = bytearray(frame(describe_cluster.API, **ASK))
        late[6:8] = (9).to_bytes(2, "big")
        await newer.send(bytes(late))
        assert newer.ended == "unsupported version 9 of DescribeCluster"
        old = side.another()
        early = bytearray(frame(produce.API, 3, transactional_id=None, acks=1, timeout=0,
                                topic_data=[]))  # fmt: skip
        early[6:8] = (2).to_bytes(2, "big")
        await old.send(bytes(early))
        assert old.ended == "unsupported version 2 of Produce"


async def test_a_request_that_comes_while_the_broker_ends_closes_the_connection() -> None:
    def refuse(work: Any) -> bool:
        work.close()
        return False

    async with api_side() as side:
        caller = Caller(Dispatch(side.services, refuse))
        assert await caller.send(frame(describe_cluster.API, **ASK)) == b""
        assert caller.ended == "broker is shutting down"


@pytest.mark.spec("NET-20")
async def test_large_requests_count_as_memory_until_they_are_answered_and_are_refused_without() -> (
    None
):
    async with api_side() as side, asyncio.TaskGroup() as tasks:
        may_end = asyncio.Event()

        async def waits(_: Request, __: Context) -> Fields:
            await may_end.wait()
            raise KafkaError(ErrorCode.request_timed_out)

        memory = Admission(20_000)
        table = answering(describe_cluster.API, waits)
        large = wire.encode_request(KEY, 0, 1, "x" * 15_000, ASK)
        dispatch = Dispatch(side.services, tasks.create_task, table, memory)
        callers = [Caller(dispatch) for _ in range(3)]
        sent = [caller.send(large) for caller in callers]
        small = Caller(dispatch)
        sent.append(small.send(frame(describe_cluster.API, **ASK)))
        assert "no memory for a request of 15" in (callers[2].ended or "")
        assert memory.used > 30_000
        may_end.set()
        assert [bool(await one) for one in sent] == [True, True, False, True]
        assert memory.used == 0


async def test_a_frame_that_cannot_be_read_closes_the_connection() -> None:
    async with api_side() as side:
        cut = frame(describe_cluster.API, **ASK)[:-1]
        assert await side.caller.send(cut) == b""
        assert side.caller.ended
        header = side.another()
        assert await header.send(cut[:10]) == b""
        assert header.ended


STOP_NOTHING: dict[str, Any] = {
    "controller_id": 0,
    "controller_epoch": 9,
    "broker_epoch": -1,
    "topic_states": [],
}
CLUSTER = {
    "listeners": "PLAINTEXT://:9092,OUTSIDE://:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "zookeeper.connect": "zk:2181",
}


@pytest.mark.spec("NET-31")
@pytest.mark.parametrize(
    ("settings", "listener", "code"),
    [
        ({}, "PLAINTEXT", ErrorCode.cluster_authorization_failed),
        (CLUSTER, "OUTSIDE", ErrorCode.cluster_authorization_failed),
        (CLUSTER, "PLAINTEXT", ErrorCode.none),
    ],
)
async def test_in_a_cluster_without_authorizer_who_comes_through_the_brokers_listener_is_a_broker(
    settings: dict[str, str], listener: str, code: ErrorCode
) -> None:
    async with api_side(settings) as side:
        caller = side.another(listener)
        assert (await caller.ask(stop_replica.API, **STOP_NOTHING)).error_code is code
        offered = await caller.ask(api_versions.API, 0)
        keys = {each.api_key for each in offered.api_keys}
        assert (stop_replica.API.key in keys) == (code is ErrorCode.none)


@pytest.mark.spec("NET-31")
async def test_what_only_brokers_may_ask_is_refused_to_clients() -> None:
    async with api_side() as side:
        said = await side.caller.ask(
            stop_replica.API,
            controller_id=0,
            controller_epoch=9,
            broker_epoch=-1,
            topic_states=[],
        )
        assert said.error_code is ErrorCode.cluster_authorization_failed
        assert side.data.services.transitions.controller_epoch == 0
        side.caller.peer.is_broker = True
        said = await side.caller.ask(
            stop_replica.API,
            controller_id=0,
            controller_epoch=9,
            broker_epoch=-1,
            topic_states=[],
        )
        assert said.error_code is ErrorCode.none


@pytest.mark.spec("NET-29")
async def test_a_refusal_is_said_in_the_words_of_its_api() -> None:
    async def refuses(_: Request, __: Context) -> Fields:
        raise KafkaError(ErrorCode.invalid_request, "not like this")

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        caller = caller_of(side, answering(describe_cluster.API, refuses), tasks)
        said = await caller.ask(describe_cluster.API, **ASK)
        assert (said.error_code, said.error_message) == (
            ErrorCode.invalid_request,
            "not like this",
        )


class NotedPool(InlinePool):
    def __init__(self) -> None:
        super().__init__()
        self.work: list[object] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.work.append(fn)
        return super().submit(fn, *args, **kwargs)


async def test_a_large_request_is_refused_in_the_thread_pool() -> None:
    async def refuses(_: Request, __: Context) -> Fields:
        raise KafkaError(ErrorCode.group_authorization_failed)

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        hosted, noted = side.data.hosted, NotedPool()
        thread_pool = hosted.environment.thread_pool._replace(pool=noted)
        hosted.environment = replace(hosted.environment, thread_pool=thread_pool)
        caller = caller_of(side, answering(delete_groups.API, refuses), tasks)
        for count, work in (10, []), (20_000, [delete_groups.refuse]):
            names = [f"g{number}" for number in range(count)]
            said = await caller.ask(delete_groups.API, groups_names=names)
            codes = {result.error_code for result in said.results}
            assert (len(said.results), codes) == (count, {ErrorCode.group_authorization_failed})
            assert noted.work == work


async def code_for(failure: Exception) -> ErrorCode:
    """What a client is told whose handler fails so; its connection stays."""

    async def fails(_: Request, __: Context) -> Fields:
        raise failure

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        caller = caller_of(side, answering(describe_cluster.API, fails), tasks)
        reply = await caller.ask(describe_cluster.API, **ASK)
        assert caller.ended is None
    return reply.error_code  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "gone", [StoreUnavailable(5, "no word", "/a"), SessionExpired("/a")], ids=["silence", "expiry"]
)
async def test_without_word_from_the_metadata_a_client_is_asked_to_come_again(
    caplog: pytest.LogCaptureFixture, gone: Exception
) -> None:
    assert await code_for(gone) is ErrorCode.request_timed_out
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


@pytest.mark.spec("NET-29")
async def test_a_handler_that_fails_is_an_error_reply_and_one_log_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await code_for(ZeroDivisionError()) is ErrorCode.unknown_server_error
    [entry] = caplog.records
    assert entry.getMessage() == "DescribeCluster v2 failed"
    assert entry.exc_info is not None


@pytest.mark.spec("NET-29")
async def test_an_answer_that_cannot_be_encoded_ends_the_connection_and_not_the_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def mumbles(_: Request, __: Context) -> Fields:
        return {"nothing": "of use"}

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        caller = caller_of(side, answering(describe_cluster.API, mumbles), tasks)
        assert await caller.start(describe_cluster.API, **ASK) == b""
        assert caller.ended == ("internal error while handling the request; see the broker log")
        said = await side.another().ask(api_versions.API, 0)
        assert said.error_code is ErrorCode.none
    assert len(caplog.records) == 1


async def test_a_handler_may_end_the_connection() -> None:
    async def ends(_: Request, __: Context) -> Fields:
        raise Disconnect("that was rude")

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        caller = caller_of(side, answering(describe_cluster.API, ends), tasks)
        assert await caller.start(describe_cluster.API, **ASK) == b""
        assert caller.ended == "that was rude"


@pytest.mark.parametrize("replied", [False, True])
async def test_a_hot_api_that_fails_ends_the_connection_unless_it_has_answered(
    replied: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: Call, __: memoryview, slot: RequestSlot, ___: Services) -> None:
        if replied:
            slot.reply([b"done"])
        raise ZeroDivisionError

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        table = {**apis.BY_KEY, 0: replace(produce.API, raw=fails)}
        caller = caller_of(side, table, tasks)
        answer = await caller.start(
            produce.API, 9, transactional_id=None, acks=1, timeout=0, topic_data=[]
        )
        assert answer == (b"done" if replied else b"")
        assert (caller.ended is None) is replied
    assert len(caplog.records) == 1


@pytest.mark.spec("NET-12", "NET-29")
async def test_requests_of_one_connection_start_in_order_also_a_hot_one_behind_a_task() -> None:
    started: list[str] = []

    async def slow(_: Request, ctx: Context) -> Fields:
        started.append("slow")
        await asyncio.sleep(1)
        started.append("slow ends")
        raise KafkaError(ErrorCode.none)

    def hot(call: Call, sent: memoryview, slot: RequestSlot, _: Services) -> None:
        started.append(f"hot {call.correlation_id} {len(sent)}")
        slot.reply_nothing()

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        table = {
            **answering(describe_cluster.API, slow),
            0: replace(produce.API, raw=hot),
        }
        caller = caller_of(side, table, tasks)
        ask = bytearray(frame(produce.API, 9, 7, transactional_id=None, acks=1, timeout=0,
                              topic_data=[]))  # fmt: skip
        size = len(ask) - 4
        waiting = [
            caller.send(frame(describe_cluster.API, number=6, **ASK)),
            caller.send(ask),
        ]
        ask[:] = bytes(len(ask))  # the receive buffer is used again
        stranger = caller_of(side, table, tasks)
        stranger.send(frame(produce.API, 9, 8, transactional_id=None, acks=1, timeout=0,
                            topic_data=[]))  # fmt: skip
        assert started == [f"hot 8 {size}"], "another connection does not wait"
        await asyncio.gather(*waiting)
        assert started[1:] == ["slow", f"hot 7 {size}", "slow ends"]
        assert caller.peer.unstarted == 0


@pytest.mark.spec("NET-12", "NET-29")
async def test_what_needs_no_task_is_answered_within_the_call_unless_tasks_are_before_it() -> None:
    heard: list[str] = []

    def refuses(_: Request, __: Context, ___: Callable[[Fields], None]) -> bool:
        heard.append("at once")
        raise KafkaError(ErrorCode.invalid_request, "not like this")

    async def handles(_: Request, __: Context) -> Fields:
        heard.append("as a task")
        raise KafkaError(ErrorCode.invalid_request, "not like this")

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        api = replace(describe_cluster.API, handler=handles, at_once=refuses)
        caller = caller_of(side, {**apis.BY_KEY, api.key: api}, tasks)
        asking = caller.start(api, **ASK)
        assert heard == ["at once"]
        await asking
        before = caller.send(frame(api_versions.API, 0))
        behind = caller.start(api, **ASK)
        assert heard == ["at once"]
        await asyncio.gather(before, behind)
        assert heard == ["at once", "as a task"]


async def test_what_cannot_be_answered_at_once_after_all_becomes_a_task() -> None:
    async def handles(_: Request, __: Context) -> Fields:
        raise KafkaError(ErrorCode.invalid_request, "later")

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        api = replace(describe_cluster.API, handler=handles, at_once=lambda *_: False)
        caller = caller_of(side, {**apis.BY_KEY, api.key: api}, tasks)
        assert (await caller.ask(api, **ASK)).error_message == "later"


async def test_failing_at_once_is_an_error_reply_and_one_log_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_: Request, __: Context, ___: Callable[[Fields], None]) -> bool:
        raise ZeroDivisionError

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        api = replace(describe_cluster.API, at_once=fails)
        caller = caller_of(side, {**apis.BY_KEY, api.key: api}, tasks)
        said = await caller.ask(api, **ASK)
        assert said.error_code is ErrorCode.unknown_server_error
    assert [entry.getMessage() for entry in caplog.records] == ["DescribeCluster v2 failed"]


async def test_a_hot_request_that_took_its_turn_and_fails_ends_the_connection_too() -> None:
    async def slow(_: Request, __: Context) -> Fields:
        raise KafkaError(ErrorCode.none)

    def hot(_: Call, __: memoryview, slot: RequestSlot, ___: Services) -> None:
        raise Disconnect("no")

    async with api_side() as side, asyncio.TaskGroup() as tasks:
        table = {**answering(describe_cluster.API, slow), 0: replace(produce.API, raw=hot)}
        caller = caller_of(side, table, tasks)
        caller.send(frame(describe_cluster.API, **ASK))
        fields: Any = {"transactional_id": None, "acks": 1, "timeout": 0, "topic_data": []}
        assert await caller.start(produce.API, 9, **fields) == b""
        assert caller.ended == "no"


def _large_produce(name: str, value: str) -> bytes:
    """To one partition, and to very many that are not there."""
    data = [{"index": 0, "records": batch(value)}]
    others = [{"index": index, "records": b""} for index in range(1, 1_000)]
    return frame(
        produce.API,
        9,
        transactional_id=None,
        acks=1,
        timeout=1_000,
        topic_data=[
            {"name": "nobody", "partition_data": others},
            {"name": name, "partition_data": data},
        ],
    )


def _small_produce(name: str, value: str) -> bytes:
    topic = {"name": name, "partition_data": [{"index": 0, "records": batch(value)}]}
    return frame(produce.API, 9, transactional_id=None, acks=1, timeout=1_000, topic_data=[topic])


async def test_no_request_overtakes_a_large_one_of_its_connection() -> None:
    async with api_side() as side:
        await side.data.lead()
        sent = [
            side.caller.send(_small_produce(TP.topic, "1")),
            side.caller.send(_large_produce(TP.topic, "2")),
            side.caller.send(_small_produce(TP.topic, "3")),
            side.caller.send(_large_produce(TP.topic, "4")),
            side.caller.send(_small_produce(TP.topic, "5")),
        ]
        replies = [wire.decode_reply(produce.KEY, 9, memoryview(await reply)[4:]) for reply in sent]
        offsets = [reply.responses[-1].partition_responses[0].base_offset for reply in replies]
        assert offsets == [0, 1, 2, 3, 4], "appended in the order they were sent"
        assert side.caller.peer.unstarted == 0


async def test_a_large_request_that_cannot_be_read_closes_the_connection_and_holds_up_nobody() -> (
    None
):
    async with api_side() as side:
        many = [{"partition_index": index, "timestamp": -1} for index in range(2_000)]
        topics = [{"name": "t", "partitions": many}, {"name": "zz", "partitions": []}]
        large = frame(list_offsets.API, 1, replica_id=-1, topics=topics)
        assert await side.caller.send(large.replace(b"zz", b"\xff\xfe")) == b""
        assert side.caller.ended is not None
        assert "cannot decode message" in side.caller.ended
        assert side.caller.peer.unstarted == 0
        other = side.another()
        assert (await other.send(large)) != b""
        assert other.ended is None
