"""What it takes to go on with a data directory that Apache Kafka wrote: the plan.

Owns: what stands in the way, and the nodes that a metadata store must have so that a broker serves
every record where it is. Never: touches a file or a store. Files are never changed by adopting, so
there is nothing to undo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from ottla.cli.topic_settings import Settings
from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.log.directories.inspection import DirectoryContents, FoundPartition
from ottla.log.directories.meta_properties import common_identity
from ottla.model.errors import UserError
from ottla.model.ids import (
    CONSUMER_OFFSETS,
    NO_TOPIC_ID,
    TRANSACTION_STATE,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)
from ottla.store import paths
from ottla.store.nodes import (
    ClusterIdNode,
    ConfigNode,
    ProducerIdBlockNode,
    StateNode,
    TopicNode,
)
from ottla.store.port import Create

# Kafka creates its own topics with these; a file of settings may say otherwise.
INTERNAL: Final[Mapping[str, Mapping[str, str]]] = {
    CONSUMER_OFFSETS: {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    },
    TRANSACTION_STATE: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    },
    "__share_group_state": {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    },
}
# Ids that producers hold and have not used yet are seen nowhere, so a new one stays far away.
PRODUCER_ID_MARGIN: Final = 1_000_000


class Topic(NamedTuple):
    """A topic that will be served."""

    name: str
    topic_id: TopicId
    partitions: tuple[FoundPartition, ...]
    overrides: Mapping[str, str]


class Plan(NamedTuple):
    """Everything that adopting would do, and what the operator should know."""

    broker_id: BrokerId
    cluster_id: str | None
    topics: tuple[Topic, ...]
    producer_ids: ProducerIdBlockNode | None
    remarks: tuple[str, ...]


def plan(
    surveys: Sequence[DirectoryContents], settings: Settings, *, new_ids: Iterator[UUID]
) -> Plan:
    """How to go on with these directories; UserError when one cannot."""
    identity = common_identity({survey.path: survey.meta for survey in surveys}, None)
    broker_id = BrokerId(0) if identity.broker_id is None else identity.broker_id
    topics, remarks = [], list(_remarks(surveys))
    compacted = frozenset[str]().union(*(survey.compacted for survey in surveys))
    for name, partitions in _by_topic(surveys).items():
        overrides, unknown = _overrides(name, settings)
        remarks += [f"{name}: {key} is no setting of ours and is left out" for key in unknown]
        if name in compacted and "cleanup.policy" not in overrides:
            raise UserError(
                f"{name}: Kafka compacted this topic, but its cleanup.policy is unknown; with "
                "the default its records would be deleted by age. Give it in a file for --configs"
            )
        topic_id = _topic_id(name, partitions)
        if topic_id == NO_TOPIC_ID:
            topic_id = next(new_ids)
        topics.append(Topic(name, topic_id, partitions, overrides))
    remarks += _remarks_on_settings(topics, settings)
    return Plan(
        broker_id,
        identity.cluster_id,
        tuple(topics),
        _producer_ids(surveys, broker_id),
        tuple(remarks),
    )


def nodes(plan: Plan) -> list[Create]:
    """The whole tree, parents first; made in one step or not at all."""
    me = plan.broker_id
    created = [Create(path) for path in paths.ROOTS]
    if plan.cluster_id is not None:
        created.append(Create(paths.CLUSTER_ID, ClusterIdNode(plan.cluster_id).encode()))
    for topic in plan.topics:
        numbers = [partition.partition.partition for partition in topic.partitions]
        node = TopicNode(topic.topic_id, {number: (me,) for number in numbers})
        created.append(Create(paths.topic_config(topic.name), ConfigNode(topic.overrides).encode()))
        created.append(Create(paths.topic(topic.name), node.encode()))
        created.append(Create(paths.partitions(topic.name)))
        for partition in topic.partitions:
            # The controller raises the epoch when it elects, so new batches get one above these.
            epoch = LeaderEpoch(max(partition.leader_epoch, 0))
            state = StateNode(me, epoch, (me,), ControllerEpoch(0))
            created.append(Create(paths.partition(partition.partition)))
            created.append(Create(paths.partition_state(partition.partition), state.encode()))
    if plan.producer_ids is not None:
        created.append(Create(paths.PRODUCER_ID_BLOCK, plan.producer_ids.encode()))
    return created


def _by_topic(surveys: Sequence[DirectoryContents]) -> dict[str, tuple[FoundPartition, ...]]:
    by_partition: dict[TopicPartition, FoundPartition] = {}
    for partition in (
        partition_found for survey in surveys for partition_found in survey.partitions
    ):
        twin = by_partition.setdefault(partition.partition, partition)
        if twin is not partition:
            raise UserError(
                f"{partition.partition} found more than once: {twin.path}, {partition.path}"
            )
    topics: dict[str, list[FoundPartition]] = {}
    for key in sorted(by_partition):
        topics.setdefault(key.topic, []).append(by_partition[key])
    for name, partitions in topics.items():
        indexes = {survey.partition.partition for survey in partitions}
        missing = sorted(set(range(max(indexes) + 1)) - indexes)
        if missing:
            raise UserError(
                f"{name}: partitions {', '.join(map(str, missing))} not found; "
                "name every directory of the broker's log.dirs, or copy the missing partitions"
            )
    return {name: tuple(partitions) for name, partitions in topics.items()}


def _topic_id(name: str, partitions: Sequence[FoundPartition]) -> TopicId:
    ids = {partition.topic_id for partition in partitions if partition.topic_id != NO_TOPIC_ID}
    if len(ids) > 1:
        listed = ", ".join(f"{partition.path}: {partition.topic_id}" for partition in partitions)
        raise UserError(f"{name}: its partitions belong to different topics: {listed}")
    return next(iter(ids), NO_TOPIC_ID)


def _overrides(name: str, settings: Settings) -> tuple[dict[str, str], list[str]]:
    """The settings that a topic will have, and the names of those that mean nothing here."""
    configured = {**INTERNAL.get(name, {}), **settings.get(name, {})}
    supported = {key: value for key, value in configured.items() if key in TopicConfig.SETTINGS}
    try:
        TopicConfig.check(BrokerConfig.parse({}), supported)
    except UserError as mistake:
        raise UserError(f"{name}: {mistake}") from None
    return supported, [key for key in configured if key not in supported]


def _producer_ids(
    surveys: Sequence[DirectoryContents], broker_id: BrokerId
) -> ProducerIdBlockNode | None:
    largest = max((survey.largest_producer_id for survey in surveys), default=-1)
    if largest < 0:
        return None
    first = (largest // 1_000 + 1) * 1_000 + PRODUCER_ID_MARGIN
    return ProducerIdBlockNode(broker_id, ProducerId(first), ProducerId(first + 999))


def _remarks_on_settings(topics: Sequence[Topic], settings: Settings) -> Iterator[str]:
    here = {topic.name for topic in topics}
    for name in settings:
        if name not in here:
            yield f"{name}: settings for a topic that is not here"
    plain = [topic.name for topic in topics if not topic.overrides]
    if plain:
        yield (
            f"without settings of their own, so that the broker's defaults hold (records go after "
            f"a week): {', '.join(plain)}"
        )


def _remarks(surveys: Sequence[DirectoryContents]) -> Iterator[str]:
    for survey in surveys:
        for name, what in survey.leftovers.items():
            yield f"{survey.path / name}: {what}; left in place, not served"
        if not survey.stopped_cleanly:
            yield f"{survey.path}: no clean shutdown recorded; the broker will recover every log"
