"""Connections between brokers."""

from __future__ import annotations

import asyncio
import threading
from random import Random
from typing import Any

import pytest

from ottla.broker.broker_links import Address, BrokerLinks
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import SystemClock
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.testing import Broker
from tests.raw_requests import FETCH, METADATA, Line, batch, create_topics, fetch_fields, produced

ME, OTHER = BrokerId(1), BrokerId(0)
RECEIVER = "ottla-receiver"


def receivers() -> int:
    return sum(thread.name == RECEIVER for thread in threading.enumerate())


def large_fetch(line: Line) -> dict[str, Any]:
    """All of topic t, which is named by its id."""
    found = line.ask(
        METADATA, 12, topics=[{"topic_id": None, "name": "t"}],
        allow_auto_topic_creation=False, include_topic_authorized_operations=False,
    )  # fmt: skip
    fields = fetch_fields("t", partition_max_bytes=16 << 20)
    fields["topics"][0]["topic_id"] = found.topics[0].topic_id
    nobody = {"replica_id": -1, "replica_epoch": -1}
    return {**fields, "max_bytes": 16 << 20, "replica_state": nobody}


@pytest.mark.real_loop
@pytest.mark.parametrize(("purpose", "threads"), [("fetch-0", 1), ("to-controller", 0)])
async def test_a_thread_receives_the_large_replies_of_replica_fetches(
    purpose: str, threads: int
) -> None:
    links = BrokerLinks(ME, "PLAINTEXT", MetadataCache(ME, SystemClock()), SystemClock(), Random(1))
    before = receivers()
    with Broker({"message.max.bytes": str(8 << 20)}) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with Line(broker.bootstrap_servers) as line:
            create_topics(line, ["t"])
            for _ in range(3):
                sent = produced(line, "t", batch("v" * (2 << 20)))
                assert sent.error_code is ErrorCode.none
            fields = large_fetch(line)
        link = links.keep(OTHER, purpose, Address(host, int(port)))
        for _ in range(3):
            reply = await link.ask(FETCH, fields, 20_000)
            [topic] = reply.body.responses
            assert len(topic.partitions[0].records) > 6 << 20
        assert receivers() == before + threads
        links.close()
    async with asyncio.timeout(10):
        while receivers() > before:  # noqa: ASYNC110 (a thread ends, nothing tells of it)
            await asyncio.sleep(0.01)


@pytest.mark.real_loop
async def test_a_fetch_that_waits_holds_up_no_request_of_another_purpose() -> None:
    """Replies come in the order of the requests: on one connection it would wait for the fetch."""
    links = BrokerLinks(ME, "PLAINTEXT", MetadataCache(ME, SystemClock()), SystemClock(), Random(1))
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        address = Address(host, int(port))
        with Line(broker.bootstrap_servers) as line:
            create_topics(line, ["t"])
            fields = {**large_fetch(line), "max_wait": 120_000}
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            fetch = links.keep(OTHER, "fetch-0", address)
            waiting = tasks.create_task(fetch.ask(FETCH, fields, 120_000))
            await asyncio.sleep(0)
            assert links.keep(OTHER, "fetch-0", address) is fetch, "a purpose keeps its connection"
            for purpose in ("fetch-1", "to-controller", "markers"):
                link = links.keep(OTHER, purpose, address)
                reply = await link.ask(METADATA, METADATA_OF_NONE, 20_000)
                assert [node.node_id for node in reply.body.brokers] == [OTHER]
            assert not waiting.done()
            waiting.cancel()
        links.close()


METADATA_OF_NONE = {
    "topics": [],
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
