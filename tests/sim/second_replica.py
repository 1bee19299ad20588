"""A second replica that does what the test says: it speaks Fetch with a replica id.

`Pair` is a broker that leads one partition, of which broker 1 has the other copy; broker 1 is a
`Replica`, which keeps the books that a follower keeps (its log end and its high watermark) and
fetches only when told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Final
from uuid import UUID

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.records.batch import build, walk
from ottla.protocol.records.record import NewRecord
from ottla.store import paths
from ottla.store.nodes import BrokerNode, EndpointNode, StateNode, TopicNode
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.sim.book import Book
from tests.sim.broker import SimBroker, SimStore
from tests.sim.client import FETCH, METADATA, PRODUCE, Client
from tests.sim.consumer import LATEST, Consumer, Tastes
from tests.sim.loop import Process, SimClock, bury
from tests.sim.network import MemoryNetwork, NetLoop
from tests.sim.trace import Trace

TP: Final = TopicPartition("pair", 0)
LEADER, FOLLOWER = BrokerId(0), BrokerId(1)
TOPIC_ID: Final = UUID(int=0xD1CE)
FIRST_WITH_REPLICA_STATE: Final = 15
FIRST_BY_ID: Final = 13
ANSWER_S: Final = 0.05
"""What the store says, the leader who wrote it hears by then."""


class Replica:
    """Broker 1's copy of the partition."""

    def __init__(self, client: Client, version: int) -> None:
        self._client = client
        self._version = version
        self.end = 0
        self.high_watermark = 0

    async def fetch(self, *, max_bytes: int = 1 << 20, max_wait_ms: int = 0) -> int:
        """One fetch from where we are, taken in as a follower does; how many batches came."""
        part = await self._ask(max_bytes, max_wait_ms)
        assert part.error_code == ErrorCode.none, part
        count = 0
        for _, header in walk(part.records or b""):
            assert header.base_offset == self.end
            self.end = header.next_offset
            count += 1
        self.high_watermark = min(self.end, part.high_watermark)
        return count

    async def _ask(self, max_bytes: int, max_wait_ms: int) -> Any:
        named = {"topic_id": TOPIC_ID} if self._version >= FIRST_BY_ID else {"topic": TP.topic}
        wanted = {
            "partition": TP.partition,
            "current_leader_epoch": -1,
            "fetch_offset": self.end,
            "log_start_offset": 0,
            "partition_max_bytes": max_bytes,
        }
        who = (
            {"replica_state": {"replica_id": FOLLOWER, "replica_epoch": -1}}
            if self._version >= FIRST_WITH_REPLICA_STATE
            else {"replica_id": FOLLOWER}
        )
        fields = {
            **who,
            "max_wait": max_wait_ms,
            "min_bytes": 1,
            "max_bytes": max_bytes,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{**named, "partitions": [wanted]}],
            "forgotten_topics_data": [],
        }
        reply = await self._client.ask(FETCH, self._version, fields, max_wait_ms + 5_000)
        [[part]] = [topic.partitions for topic in reply.responses]
        return part


class Pair:
    def __init__(
        self, loop: NetLoop, clock: SimClock, settings: Mapping[str, str], version: int
    ) -> None:
        self.clock = clock
        in_cluster = {**settings, "zookeeper.connect": "zk:2181"}
        self.broker = SimBroker(loop, clock, ForgettingDisk(clock.wall_ms), in_cluster)
        self._client = Client("client", clock, Random(1))
        self.replica = Replica(Client("replica", clock, Random(2)), version)
        self._consumer = Consumer(self._client, [TP], Book(loop), Tastes())

    async def open(self) -> None:
        """Start the leader, lay the topic with two replicas into the store, and join the ISR."""
        await self.broker.begin()
        store = SimStore(self.broker.ensemble)
        await store.start()
        await self._register_follower(store)
        topic = TopicNode(TOPIC_ID, {TP.partition: (LEADER, FOLLOWER)})
        await store.create(paths.topic(TP.topic), topic.encode())
        await self.until_metadata_says(LEADER, FOLLOWER)
        await self.replica.fetch()
        await self.until_isr(LEADER, FOLLOWER)

    async def _register_follower(self, store: SimStore) -> None:
        """The controller takes live brokers only into an in-sync set."""
        endpoint = EndpointNode("PLAINTEXT", "replica", 9092, "PLAINTEXT")
        node = BrokerNode((endpoint,), self.clock.wall_ms())
        await store.create(paths.broker(FOLLOWER), node.encode(), ephemeral=True)

    async def produce(self, *values: bytes, acks: int = 1, timeout_ms: int = 30_000) -> ErrorCode:
        """One batch for each value, in one go; how the last one went."""
        code = ErrorCode.none
        for value in values:
            batch = build([NewRecord(b"key", value, timestamp=self.clock.wall_ms())])
            fields = {
                "transactional_id": None,
                "acks": acks,
                "timeout": timeout_ms,
                "topic_data": [
                    {
                        "name": TP.topic,
                        "partition_data": [{"index": TP.partition, "records": batch}],
                    }
                ],
            }
            reply = await self._client.ask(PRODUCE, 9, fields, timeout_ms + 1_000)
            [[part]] = [topic.partition_responses for topic in reply.responses]
            code = ErrorCode(part.error_code)
        return code

    async def high_watermark(self) -> int:
        """What consumers can read up to."""
        return await self._consumer.bound(TP, LATEST)

    def isr(self) -> tuple[int, ...]:
        """What the store says."""
        entry = self.broker.ensemble.tree.find(paths.partition_state(TP))
        assert entry is not None
        return StateNode.decode(entry.node().data).isr

    def announcements(self) -> list[str]:
        return self.broker.ensemble.tree.children(paths.ISR_CHANGES)

    async def metadata_isr(self) -> tuple[int, ...]:
        """What the broker tells its clients; nothing while there is no leader."""
        fields = {
            "topics": [{"topic_id": None, "name": TP.topic}],
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        }
        reply = await self._client.ask(METADATA, 12, fields)
        [topic] = reply.topics
        return next((tuple(part.isr_nodes) for part in topic.partitions), ())

    async def until_isr(self, *brokers: BrokerId, within_s: int = 60) -> float:
        """Wait for the store to say so; how long it took."""
        began_s = asyncio.get_running_loop().time()
        for _ in range(within_s * 100):
            if self.isr() == brokers:
                took_s = asyncio.get_running_loop().time() - began_s
                await asyncio.sleep(ANSWER_S)
                return took_s
            await asyncio.sleep(0.01)
        raise AssertionError(f"the ISR is still {self.isr()}, expected {brokers}")

    async def until_metadata_says(self, *brokers: BrokerId) -> None:
        for _ in range(100):
            if await self.metadata_isr() == brokers:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"Metadata does not return the ISR {brokers}")


def play(
    story: Callable[[Pair], Awaitable[None]],
    settings: Mapping[str, str] | None = None,
    *,
    version: int = 12,
) -> None:
    """Tell a story of two replicas on virtual time."""
    _play(story, settings or {}, version)
    bury()


def _play(
    story: Callable[[Pair], Awaitable[None]], settings: Mapping[str, str], version: int
) -> None:
    loop = NetLoop(Random(0), Trace())
    loop.network = MemoryNetwork(loop, Random(0))
    clients = Process("clients")

    async def tell(pair: Pair) -> None:
        await pair.open()
        await story(pair)
        await pair.broker.stop()

    with clients.running():
        pair = Pair(loop, SimClock(loop), settings, version)
        loop.run_until_complete(asyncio.wait_for(tell(pair), 600))
    assert not loop.unhandled
    loop.let_go([*pair.broker.lives, clients])
