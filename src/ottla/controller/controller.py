"""The interface of the controller for the rest of the broker.

Owns how long a reply is waited for: until the controller has decided and this broker's metadata
cache shows the result, or until the client's timeout. Never decides; on a broker that is not the
active controller every request fails with NOT_CONTROLLER.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final, TypeVar, cast

from ottla.config.broker import BrokerConfig
from ottla.config.changes import check
from ottla.config.dynamic import DynamicConfig
from ottla.config.topic import TopicConfig
from ottla.controller import topic_rules
from ottla.controller.events import (
    DeletionRequested,
    ElectionKind,
    ElectionRequested,
    Event,
    IsrChangeRequested,
    IsrProposal,
    MorePartitions,
    Moves,
    NewTopic,
    PartitionCreationRequested,
    ReassignmentRequested,
    ShutdownRequested,
    TopicCreationRequested,
    UncleanElectionEnabled,
)
from ottla.controller.placement import PlacementRandomness
from ottla.controller.runtime.forwarding import Forwarder
from ottla.controller.runtime.loop import ControllerLoop
from ottla.controller.runtime.metadata_waiter import Condition, MetadataWaiter
from ottla.controller.runtime.store_reader import new_topic_id
from ottla.controller.state import Leadership, PartitionAssignment, TopicRules
from ottla.controller.topic_rules import automatic
from ottla.controller.topics import UNCLEAN, Created
from ottla.delay.slices import PLAIN, in_slices, parts_of, sliced
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, BrokerEpoch, BrokerId, TopicId, TopicPartition

Answer = TypeVar("Answer")
Item = TypeVar("Item")
CREATE_TOPICS: Final = 19
CHECKED_AT_ONCE: Final = 20
"""Topics whose names and settings are checked between two turns of the event loop."""
TOPICS_AT_ONCE: Final = 20
"""Topics of one request that the controller handles in one event."""
ELECTIONS_AT_ONCE: Final = 1_000
"""Partitions of one request whose leaders the controller elects in one event."""
TIMED_OUT = KafkaError(ErrorCode.request_timed_out, "The request timed out.")


class Controller:
    def __init__(
        self,
        loop: ControllerLoop,
        config: DynamicConfig,
        metadata_waiter: MetadataWaiter,
        *,
        dice: Random,
        forwarder: Forwarder | None = None,
    ) -> None:
        self._loop = loop
        self.forwarder = forwarder
        """For requests that only the active controller answers; None if there is one broker."""
        self._config = config
        self.metadata_waiter = metadata_waiter
        self._dice = dice
        loop.set_rules(TopicRules.of(config.current))
        config.on_broker(self._broker_settings_changed)
        config.on_topic(self._topic_settings_changed)

    @property
    def is_active(self) -> bool:
        return self._loop.is_active

    async def wait_started(self) -> None:
        """Wait for the first election, and until the metadata cache has all topics.

        LeaderAndIsr is sent before UpdateMetadata, so this broker then leads its partitions too.
        """
        await self._loop.first_election_done.wait()
        await self.metadata_waiter.wait_for(self._has_all_topics)

    async def create_topics(
        self, topics: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool = False
    ) -> dict[str, Created | KafkaError]:
        """Created in slices; topics of slices not begun before the timeout are not created."""
        answer: dict[str, Created | KafkaError] = {}
        valid: list[NewTopic] = []
        async for topic in in_slices(topics, CHECKED_AT_ONCE):
            try:
                topic_rules.check_name(topic.name)
                check(TopicConfig, self._config.current, topic.config)
            except KafkaError as refusal:
                answer[topic.name] = refusal
            else:
                answer[topic.name] = TIMED_OUT
                valid.append(self._with_randomness(topic))
        budget = self._loop.state.rules.partitions_per_request_max

        async def create(some: Sequence[NewTopic]) -> None:
            nonlocal budget
            results: dict[str, Created | KafkaError] = await self._decide(
                lambda id_: TopicCreationRequested(id_, tuple(some), validate_only, budget),
                lambda results: None if validate_only else _all_have_leaders(results),
            )
            answer.update(results)
            created = (result for result in results.values() if isinstance(result, Created))
            budget -= sum(result.partition_count for result in created)

        await _each_slice(parts_of(valid, TOPICS_AT_ONCE), create, timeout_ms)
        return answer

    async def auto_create(
        self, names: Sequence[str], timeout_ms: int
    ) -> dict[str, Created | KafkaError]:
        """Create topics on first use: with defaults, internal topics with their own settings.

        It raises nothing: a broker that stops being the active controller meanwhile refuses each.
        """
        if self.is_active:
            live = len(self._loop.state.live)
            new = [automatic(name, self._config.current, live) for name in names]
            try:
                answer = await self.create_topics(new, timeout_ms)
            except KafkaError as refusal:
                answer = dict.fromkeys(names, refusal)
        elif self.forwarder is not None:
            live = len(self.metadata_waiter.image.brokers)
            new = [automatic(name, self._config.current, live) for name in names]
            answer = await _ask_to_create(self.forwarder, new, timeout_ms)
        else:
            return {name: KafkaError(ErrorCode.not_controller) for name in names}
        existing = [  # created elsewhere, perhaps at the same time: wait for it as well
            name for name in names if _exists(answer.get(name))
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self.metadata_waiter.wait_for(
                    lambda image: all(name in image.topics for name in existing)
                )
        return answer

    async def create_partitions(
        self, topics: Sequence[MorePartitions], timeout_ms: int, *, validate_only: bool = False
    ) -> Mapping[str, KafkaError | None]:
        totals = {topic.name: topic.total async for topic in in_slices(topics, PLAIN)}
        answer: dict[str, KafkaError | None] = dict.fromkeys(totals, TIMED_OUT)
        budget = self._loop.state.rules.partitions_per_request_max

        async def create(some: Sequence[MorePartitions]) -> None:
            nonlocal budget
            existing = self._loop.state.topics
            before = {
                topic.name: len(existing[topic.name].partitions)
                for topic in some
                if topic.name in existing
            }
            results: Mapping[str, KafkaError | None] = await self._decide(
                lambda id_: PartitionCreationRequested(id_, tuple(some), validate_only, budget),
                lambda results: None if validate_only else _have_partitions(results, totals),
            )
            answer.update(results)
            grown = (name for name, refusal in results.items() if refusal is None)
            budget -= sum(totals[name] - before.get(name, 0) for name in grown)

        await _each_slice(parts_of(topics, TOPICS_AT_ONCE), create, timeout_ms)
        return answer

    async def delete_topics(self, names: Iterable[str], timeout_ms: int) -> dict[str, ErrorCode]:
        """A code for each topic; the deletions complete one by one but share one reply."""
        pending: dict[str, tuple[int, asyncio.Future[object]]] = {}
        codes = dict.fromkeys(names, ErrorCode.request_timed_out)
        try:
            async for some in in_slices(parts_of(list(codes), TOPICS_AT_ONCE), 1):
                opened = {name: self._loop.open_request() for name in some}
                pending |= opened
                ids = {name: request_id for name, (request_id, _) in opened.items()}
                self._loop.put(DeletionRequested(ids))
            async with asyncio.timeout(timeout_ms / 1000):
                async for name, (_, answer) in in_slices(pending.items()):
                    code = cast(ErrorCode, await answer)
                    if code is ErrorCode.none:
                        await self.metadata_waiter.wait_for(_has_no_topic(name))
                    codes[name] = code
        except TimeoutError:
            pass
        finally:
            async for request_id, _ in in_slices(pending.values()):
                self._loop.close_request(request_id)
        return codes

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, timeout_ms: int
    ) -> dict[TopicPartition, ErrorCode]:
        """A code for each partition; of all partitions, for those that need an election."""
        codes: dict[TopicPartition, ErrorCode] = {}
        decided = 0

        async def elect(some: Sequence[TopicPartition] | None) -> None:
            nonlocal decided
            elected: Mapping[TopicPartition, ErrorCode] = await self._decide(
                lambda id_: ElectionRequested(id_, kind, None if some is None else tuple(some)),
                lambda codes: _have_elected_leaders(kind, codes),
            )
            codes.update(elected)
            decided += 1

        parts: Sequence[Sequence[TopicPartition] | None] = [None]
        if partitions is not None:
            parts = sliced(partitions, ELECTIONS_AT_ONCE) or [()]
        await _each_slice(parts, elect, timeout_ms)
        async for part in in_slices(parts[decided:], 1):
            codes.update(dict.fromkeys(part or (), ErrorCode.request_timed_out))
        return codes

    async def reassign_partitions(
        self, moves: Moves, timeout_ms: int, *, keep_factor: bool = False
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """`keep_factor` refuses a change of the replication factor."""
        return await self._decide_within(
            lambda id_: ReassignmentRequested(id_, moves, keep_factor),
            timeout_ms,
            dict.fromkeys(moves, TIMED_OUT),
        )

    def reassignments(self) -> dict[TopicPartition, PartitionAssignment]:
        """The running reassignments; NOT_CONTROLLER if this is not the active controller."""
        if not self.is_active:
            raise KafkaError(ErrorCode.not_controller, "This is not the active controller.")
        return {
            tp: partition for tp, partition in self._loop.state.partitions() if partition.is_moving
        }

    async def change_isrs(
        self,
        broker: BrokerId,
        epoch: BrokerEpoch,
        proposals: Mapping[tuple[TopicId, int], IsrProposal],
    ) -> Mapping[tuple[TopicId, int], Leadership | ErrorCode]:
        """What leaders propose, by topic id and partition number; the state or refusal of each."""
        reply = await self._loop.request(
            lambda id_: IsrChangeRequested(id_, broker, epoch, proposals)
        )
        if isinstance(reply, KafkaError):
            raise reply
        return cast(Mapping[tuple[TopicId, int], Leadership | ErrorCode], reply)

    async def controlled_shutdown(
        self, broker: BrokerId, epoch: BrokerEpoch
    ) -> frozenset[TopicPartition]:
        """Move leaders away from a broker that stops; returns the partitions it still leads."""
        reply = await self._loop.request(lambda id_: ShutdownRequested(id_, broker, epoch))
        if isinstance(reply, KafkaError):
            raise reply
        return cast(frozenset[TopicPartition], reply)

    async def _decide_within(
        self,
        make_event: Callable[[int], Event],
        timeout_ms: int,
        on_timeout: Answer,
        visible: Callable[[Answer], Condition | None] = lambda _: None,
    ) -> Answer:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._decide(make_event, visible)
        except TimeoutError:
            return on_timeout

    async def _decide(
        self, make_event: Callable[[int], Event], visible: Callable[[Answer], Condition | None]
    ) -> Answer:
        """The controller's reply, once this broker's metadata cache shows the decision."""
        answer = cast(Answer, await self._loop.request(make_event))
        condition = visible(answer)
        if condition is not None:
            await self.metadata_waiter.wait_for(condition)
        return answer

    def _has_all_topics(self, image: Image) -> bool:
        if not image.is_whole:
            return False
        state = self._loop.state  # empty unless this is the controller
        return image.topics.keys() >= state.topics.keys() - state.deletions.keys()

    def _with_randomness(self, topic: NewTopic) -> NewTopic:
        randomness = PlacementRandomness(self._dice.getrandbits(31), self._dice.getrandbits(31))
        return topic._replace(id=new_topic_id(self._dice), randomness=randomness)

    def _broker_settings_changed(self, _: BrokerConfig, now: BrokerConfig) -> None:
        self._loop.set_rules(TopicRules.of(now))

    def _topic_settings_changed(self, name: str) -> None:
        overrides = self._config.topic_overrides(name)
        allowed = None
        if UNCLEAN in overrides:
            allowed = self._config.topic(name).unclean_leader_election_enable
        if self._loop.state.unclean.get(name) != allowed:
            self._loop.put(UncleanElectionEnabled(name, allowed))


def _exists(outcome: Created | KafkaError | None) -> bool:
    if isinstance(outcome, KafkaError):
        return outcome.code is ErrorCode.topic_already_exists
    return outcome is None


async def _ask_to_create(
    forwarder: Forwarder, topics: Sequence[NewTopic], timeout_ms: int
) -> dict[str, Created | KafkaError]:
    """Have the active controller, another broker, create these; only the refusals are returned."""
    new_topics = [
        {
            "name": topic.name,
            "num_partitions": topic.partition_count,
            "replication_factor": topic.replication_factor,
            "assignments": [],
            "configs": [{"name": name, "value": value} for name, value in topic.config.items()],
        }
        for topic in topics
    ]
    fields = {"topics": new_topics, "timeout": timeout_ms, "validate_only": False}
    try:
        reply = await forwarder.ask(CREATE_TOPICS, fields, timeout_ms)
    except KafkaError as refusal:
        return {topic.name: refusal for topic in topics}
    return {
        topic.name: KafkaError(topic.error_code, topic.error_message)
        for topic in reply.topics
        if topic.error_code is not ErrorCode.none
    }


async def _each_slice(
    slices: Iterable[Item],
    create: Callable[[Item], Awaitable[None]],
    timeout_ms: int,
) -> None:
    """One slice after the other, until the timeout or the first error.

    An error of the first slice fails the whole request: nothing has been created.
    """
    completed = 0
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            for some in slices:
                await create(some)
                completed += 1
    except TimeoutError:
        return
    except KafkaError:
        if not completed:
            raise


def _all_have_leaders(results: object) -> Condition:
    """Every created topic is in the metadata, with a leader for each of its partitions."""
    created_topics = {
        name: created
        for name, created in cast(dict[str, Created | KafkaError], results).items()
        if isinstance(created, Created)
    }

    def condition(image: Image) -> bool:
        for name, created in created_topics.items():
            topic = image.topics.get(name)
            if topic is None or topic.id != created.id:
                return False
            led = sum(partition.leader != NO_BROKER for partition in topic.partitions.values())
            if led < created.partition_count:
                return False
        return True

    return condition


def _has_no_topic(name: str) -> Condition:
    return lambda image: name not in image.topics


def _have_partitions(
    results: Mapping[str, KafkaError | None], totals: Mapping[str, int]
) -> Condition:
    grown = {name: totals[name] for name, refusal in results.items() if refusal is None}

    def condition(image: Image) -> bool:
        return all(
            name in image.topics and len(image.topics[name].partitions) >= total
            for name, total in grown.items()
        )

    return condition


def _have_elected_leaders(
    kind: ElectionKind, codes: Mapping[TopicPartition, ErrorCode]
) -> Condition | None:
    """The metadata has the new leader of each partition that elected one."""
    elected = [tp for tp, code in codes.items() if code is ErrorCode.none]

    def condition(image: Image) -> bool:
        partitions = [p for p in map(image.partition, elected) if p is not None]
        if kind is ElectionKind.PREFERRED:
            return all(partition.leader == partition.replicas[0] for partition in partitions)
        return all(partition.leader >= 0 for partition in partitions)

    return condition if elected else None
