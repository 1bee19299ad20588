"""What the rest of the broker asks of the controller.

Owns how long an answer is waited for: until the controller has decided and this broker's metadata
shows it, or until the client's time is over. Never decides; on a broker whose controller is not
the active one every question is refused with NOT_CONTROLLER.
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
from ottla.controller.runtime.loop import ControllerLoop
from ottla.controller.runtime.metadata_waiter import Condition, MetadataWaiter
from ottla.controller.runtime.store_reader import new_topic_id
from ottla.controller.state import PartitionAssignment, TopicRules
from ottla.controller.topic_rules import automatic
from ottla.controller.topics import UNCLEAN, Created
from ottla.delay.slices import in_slices, sliced
from ottla.metadata.image import Image
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, BrokerEpoch, BrokerId, TopicPartition
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.producer_ids import ProducerIds

Answer = TypeVar("Answer")
Item = TypeVar("Item")
CHECKED_AT_ONCE: Final = 20
"""Topics whose names and settings are checked between two turns of the loop."""
TOPICS_AT_ONCE: Final = 20
"""Topics of one request that the controller decides about at a time."""
TIMED_OUT = KafkaError(ErrorCode.request_timed_out, "The request timed out.")


class Controller:
    def __init__(
        self,
        loop: ControllerLoop,
        config: DynamicConfig,
        configs: ConfigStore,
        producer_ids: ProducerIds,
        shown: MetadataWaiter,
        *,
        acls: AclStore,
        dice: Random,
    ) -> None:
        self._loop = loop
        self._config = config
        self.configs = configs
        self.producer_ids = producer_ids
        self.shown = shown
        self.acls = acls
        self._dice = dice
        loop.set_rules(TopicRules.of(config.current))
        config.on_broker(self._broker_settings_changed)
        config.on_topic(self._topic_settings_changed)

    @property
    def is_active(self) -> bool:
        return self._loop.is_active

    async def wait_started(self) -> None:
        """The first election is over, and this broker shows all that the controller knows.

        What a broker hears of its own replicas comes before what it shows, so it then leads too.
        """
        await self._loop.settled.wait()
        await self.shown.until(self._shows_everything)

    async def create_topics(
        self, topics: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool = False
    ) -> dict[str, Created | KafkaError]:
        """Many are asked for a slice at a time: what was not begun in time is not made."""
        answer: dict[str, Created | KafkaError] = {}
        sound: list[NewTopic] = []
        async for topic in in_slices(topics, CHECKED_AT_ONCE):
            try:
                topic_rules.check_name(topic.name)
                check(TopicConfig, self._config.current, topic.config)
            except KafkaError as refusal:
                answer[topic.name] = refusal
            else:
                answer[topic.name] = TIMED_OUT
                sound.append(self._rolled(topic))
        budget = self._loop.state.rules.partitions_per_request_max

        async def ask(some: Sequence[NewTopic]) -> None:
            nonlocal budget
            said: dict[str, Created | KafkaError] = await self._decided(
                lambda ask: TopicCreationRequested(ask, tuple(some), validate_only, budget),
                lambda said: None if validate_only else _all_led(said),
            )
            answer.update(said)
            made = (one for one in said.values() if isinstance(one, Created))
            budget -= sum(one.partition_count for one in made)

        await _each_slice(sliced(sound, TOPICS_AT_ONCE), ask, timeout_ms)
        return answer

    async def auto_create(
        self, names: Sequence[str], timeout_ms: int
    ) -> dict[str, Created | KafkaError]:
        """Topics used before they exist, with the defaults, or with their own if they are ours."""
        if not self.is_active:
            return {name: KafkaError(ErrorCode.not_controller) for name in names}
        live = len(self._loop.state.live)
        new = [automatic(name, self._config.current, live) for name in names]
        answer = await self.create_topics(new, timeout_ms)
        others = [  # somebody asked for it at the same time: it will be shown just as soon
            name
            for name, outcome in answer.items()
            if isinstance(outcome, KafkaError) and outcome.code is ErrorCode.topic_already_exists
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self.shown.until(lambda image: all(name in image.topics for name in others))
        return answer

    async def create_partitions(
        self, topics: Sequence[MorePartitions], timeout_ms: int, *, validate_only: bool = False
    ) -> Mapping[str, KafkaError | None]:
        totals = {topic.name: topic.total for topic in topics}
        answer: dict[str, KafkaError | None] = dict.fromkeys(totals, TIMED_OUT)
        budget = self._loop.state.rules.partitions_per_request_max

        async def ask(some: Sequence[MorePartitions]) -> None:
            nonlocal budget
            known = self._loop.state.topics
            before = {
                one.name: len(known[one.name].partitions) for one in some if one.name in known
            }
            said: Mapping[str, KafkaError | None] = await self._decided(
                lambda ask: PartitionCreationRequested(ask, tuple(some), validate_only, budget),
                lambda said: None if validate_only else _grown(said, totals),
            )
            answer.update(said)
            grown = (name for name, refusal in said.items() if refusal is None)
            budget -= sum(totals[name] - before.get(name, 0) for name in grown)

        await _each_slice(sliced(topics, TOPICS_AT_ONCE), ask, timeout_ms)
        return answer

    async def delete_topics(self, names: Iterable[str], timeout_ms: int) -> dict[str, ErrorCode]:
        """Each topic's fate; several end at different times but are answered together."""
        asks = {name: self._loop.open_ask() for name in names}
        for some in sliced(list(asks), TOPICS_AT_ONCE):
            self._loop.put(DeletionRequested({name: asks[name][0] for name in some}))
        codes = dict.fromkeys(asks, ErrorCode.request_timed_out)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                async for name, (_, answer) in in_slices(asks.items()):
                    code = cast(ErrorCode, await answer)
                    if code is ErrorCode.none:
                        await self.shown.until(lambda image, name=name: name not in image.topics)  # type: ignore[misc]
                    codes[name] = code
        except TimeoutError:
            pass
        finally:
            for number, _ in asks.values():
                self._loop.close_ask(number)
        return codes

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, timeout_ms: int
    ) -> Mapping[TopicPartition, ErrorCode]:
        named = None if partitions is None else tuple(partitions)
        return await self._ask(
            lambda ask: ElectionRequested(ask, kind, named),
            timeout_ms,
            dict.fromkeys(named or (), ErrorCode.request_timed_out),
            shown=lambda codes: _led(kind, codes),
        )

    async def move_partitions(
        self, moves: Moves, timeout_ms: int, *, keep_factor: bool = False
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """`keep_factor` refuses a move that would change how many replicas there are."""
        return await self._ask(
            lambda ask: ReassignmentRequested(ask, moves, keep_factor),
            timeout_ms,
            dict.fromkeys(moves, TIMED_OUT),
        )

    def moving(self) -> dict[TopicPartition, PartitionAssignment]:
        """The moves under way, if this is the controller who knows."""
        if not self.is_active:
            raise KafkaError(ErrorCode.not_controller, "This is not the active controller.")
        return {
            tp: partition for tp, partition in self._loop.state.partitions() if partition.is_moving
        }

    async def let_go(self, broker: BrokerId, epoch: BrokerEpoch) -> frozenset[TopicPartition]:
        """A broker stops in order: the partitions that still need it, or the refusal."""
        said = await self._loop.ask(lambda ask: ShutdownRequested(ask, broker, epoch))
        if isinstance(said, KafkaError):
            raise said
        return cast(frozenset[TopicPartition], said)

    async def _ask(
        self,
        event_of: Callable[[int], Event],
        timeout_ms: int,
        on_timeout: Answer,
        shown: Callable[[Answer], Condition | None] = lambda _: None,
    ) -> Answer:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._decided(event_of, shown)
        except TimeoutError:
            return on_timeout

    async def _decided(
        self, event_of: Callable[[int], Event], shown: Callable[[Answer], Condition | None]
    ) -> Answer:
        """The controller's answer, once this broker shows what it decided."""
        answer = cast(Answer, await self._loop.ask(event_of))
        condition = shown(answer)
        if condition is not None:
            await self.shown.until(condition)
        return answer

    def _shows_everything(self, image: Image) -> bool:
        if image.controller_id is None:
            return False
        state = self._loop.state  # empty unless this is the controller
        return image.topics.keys() >= state.topics.keys() - state.deletions.keys()

    def _rolled(self, topic: NewTopic) -> NewTopic:
        roll = PlacementRandomness(self._dice.getrandbits(31), self._dice.getrandbits(31))
        return topic._replace(id=new_topic_id(self._dice), roll=roll)

    def _broker_settings_changed(self, _: BrokerConfig, now: BrokerConfig) -> None:
        rules = TopicRules.of(now)
        if rules != self._loop.state.rules:
            self._loop.set_rules(rules)

    def _topic_settings_changed(self, name: str) -> None:
        overrides = self._config.topic_overrides(name)
        said = UNCLEAN in overrides
        allowed = self._config.topic(name).unclean_leader_election_enable if said else None
        if self._loop.state.unclean.get(name) != allowed:
            self._loop.put(UncleanElectionEnabled(name, allowed))


async def _each_slice(
    slices: Sequence[Sequence[Item]],
    ask: Callable[[Sequence[Item]], Awaitable[None]],
    timeout_ms: int,
) -> None:
    """One slice after the other, as many as there is time for, and none after a refusal.

    A refusal of the first is one of the whole request: nothing has been done.
    """
    done = 0
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            for some in slices:
                await ask(some)
                done += 1
    except TimeoutError:
        return
    except KafkaError:
        if not done:
            raise


def _all_led(said: object) -> Condition:
    """Every topic that was created can be found, with a leader for each of its partitions."""
    made = {
        name: created
        for name, created in cast(dict[str, Created | KafkaError], said).items()
        if isinstance(created, Created)
    }

    def condition(image: Image) -> bool:
        for name, created in made.items():
            topic = image.topics.get(name)
            if topic is None or topic.id != created.id:
                return False
            led = sum(partition.leader != NO_BROKER for partition in topic.partitions.values())
            if led < created.partition_count:
                return False
        return True

    return condition


def _grown(said: Mapping[str, KafkaError | None], totals: Mapping[str, int]) -> Condition:
    grown = {name: totals[name] for name, refusal in said.items() if refusal is None}

    def condition(image: Image) -> bool:
        return all(
            name in image.topics and len(image.topics[name].partitions) >= total
            for name, total in grown.items()
        )

    return condition


def _led(kind: ElectionKind, codes: Mapping[TopicPartition, ErrorCode]) -> Condition | None:
    """Each partition that got a leader has it, for everybody who asks this broker."""
    elected = [tp for tp, code in codes.items() if code is ErrorCode.none]

    def shows(image: Image) -> bool:
        found = (image.partition(tp) for tp in elected)
        if kind is ElectionKind.PREFERRED:
            return all(one is None or one.leader == one.replicas[0] for one in found)
        return all(one is None or one.leader >= 0 for one in found)

    return shows if elected else None
