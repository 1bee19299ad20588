"""Two brokers' replica layers in one process: real logs, real dispatch, real fetchers.

What a controller would say is said with `lead`; requests go from one dispatch to the other without
a socket, unless the link is cut.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from ottla.broker.broker_links import LocalLink
from ottla.model.ids import BrokerId, TopicPartition
from ottla.net.broker_link import LinkReply, RawReply
from ottla.net.request_slot import Bytes
from ottla.protocol.wire import Fields
from ottla.replica.partition import HostedPartition
from tests.fakes.api_side import ApiSide, api_side
from tests.fakes.data_side import ME, OTHER, TP, DataSide
from tests.fakes.forgetting_disk import ForgettingDisk

BOTH = (ME, OTHER)


class CuttableLink:
    """A link to the dispatch of another broker."""

    def __init__(self, target: ApiSide) -> None:
        self._link = LocalLink(target.dispatch, target.data.clock)
        self.cut = False
        self.requests: list[int] = []
        """The API keys of what was asked."""
        self.change: Callable[[RawReply], RawReply] = lambda reply: reply
        """What happens to a fetch reply on its way."""

    async def ask(self, key: int, fields: Fields, timeout_ms: int) -> LinkReply:
        self._check(key)
        return await self._link.ask(key, fields, timeout_ms)

    async def ask_encoded(
        self, key: int, encode: Callable[[int], Sequence[Bytes]], timeout_ms: int
    ) -> RawReply:
        self._check(key)
        reply = await self._link.ask_encoded(key, encode, timeout_ms)
        if self.cut:
            raise ConnectionError("the network went down")
        return self.change(reply)

    def _check(self, key: int) -> None:
        if self.cut:
            raise ConnectionError("the network is down")
        self.requests.append(key)


class ReplicaPair:
    def __init__(self, first: ApiSide, second: ApiSide) -> None:
        self.apis = {ME: first, OTHER: second}
        self.links = {ME: CuttableLink(first), OTHER: CuttableLink(second)}
        first.data.links[OTHER] = self.links[OTHER]
        second.data.links[ME] = self.links[ME]
        for side in (first.data, second.data):
            side.run(side.data.fetchers.run())

    def data(self, broker: BrokerId) -> DataSide:
        return self.apis[broker].data

    def partition(self, broker: BrokerId, key: TopicPartition = TP) -> HostedPartition:
        return self.data(broker).hosted.get(key)

    async def lead(
        self,
        leader: BrokerId,
        *,
        epoch: int,
        isr: tuple[BrokerId, ...] = BOTH,
        key: TopicPartition = TP,
        to: tuple[BrokerId, ...] = BOTH,
    ) -> None:
        """Tell these brokers who leads, the leader first."""
        for broker in sorted(to, key=lambda each: each != leader):
            await self.data(broker).lead(
                key, epoch=epoch, replicas=BOTH, isr=isr, leader=leader, is_new=epoch == 0
            )

    async def pass_ms(self, ms: int) -> None:
        side = self.data(ME)
        await side.until(side.clock.mono_ms() + ms)

    def contents(self, broker: BrokerId, key: TopicPartition = TP) -> bytes:
        """The bytes of all segments of a log."""
        return b"".join(
            segment.file().slice(0, segment.size).read()
            for segment in self.partition(broker, key).log.segments
            if segment.size
        )


@asynccontextmanager
async def replica_pair(
    settings: Mapping[str, str] | None = None,
    disks: tuple[ForgettingDisk, ForgettingDisk] | None = None,
    dirs: tuple[str, ...] = ("/data",),
) -> AsyncIterator[ReplicaPair]:
    first, second = disks or (ForgettingDisk(), ForgettingDisk())
    async with (
        api_side(settings, disk=first, dirs=dirs) as one,
        api_side(settings, disk=second, dirs=dirs, broker_id=OTHER) as two,
    ):
        yield ReplicaPair(one, two)
