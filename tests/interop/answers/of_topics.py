"""Topics: created, described, given partitions, moved, elected for, deleted."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from tests.interop.answers.scenario import ALL, Ask, Scenario, Served, ask, scenario, since, topic

LONG: Final = "x" * 250
NO_SUCH_ID: Final = UUID("11111111-2222-3333-4444-555555555555")
NAMES: Final = ("", ".", "..", "a/b", "a b", "ä", "a\nb", LONG, "x" * 249)


def new(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    """A topic as CreateTopics wants it."""
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **more}


def create(versions: int | range, *topics: dict[str, Any], **more: Any) -> Ask:
    return ask("CreateTopics", versions, topics=list(topics), timeout=10_000, **more)


def set_to(**settings: str | None) -> list[dict[str, Any]]:
    return [{"name": key.replace("_", "."), "value": value} for key, value in settings.items()]


def placed(*brokers: list[int], first: int = 0) -> list[dict[str, Any]]:
    """Replicas of partitions from `first` on."""
    return [{"partition_index": first + at, "broker_ids": ids} for at, ids in enumerate(brokers)]


def delete(versions: int | range, *names: str, **more: Any) -> Ask:
    return ask("DeleteTopics", versions, topic_names=list(names), timeout=10_000, **more)


def grow(name: str, count: int, **more: Any) -> dict[str, Any]:
    """A topic as CreatePartitions wants it."""
    return {"name": name, "count": count, "assignments": None, **more}


def add(versions: int | range, *topics: dict[str, Any], **more: Any) -> Ask:
    return ask("CreatePartitions", versions, topics=list(topics), timeout=10_000, **more)


def metadata(versions: int | range, *names: str, create: bool = False, **more: Any) -> Ask:
    topics = [{"name": name} for name in names]
    return ask("Metadata", versions, topics=topics, allow_auto_topic_creation=create, **more)


def reassign(name: str, partition: int, replicas: list[int] | None, **more: Any) -> Ask:
    partitions = [{"partition_index": partition, "replicas": replicas}]
    topics = [{"name": name, "partitions": partitions}]
    return ask("AlterPartitionReassignments", ALL, timeout=10_000, topics=topics, **more)


def _cursor(name: str, partition: int) -> dict[str, Any]:
    return {"topic_name": name, "partition_index": partition}


BAD_TOPICS: Final[dict[str, dict[str, Any]]] = {
    "no partitions": new("$t", 0),
    "minus two partitions": new("$t", -2),
    "no replicas": new("$t", 1, 0),
    "minus two replicas": new("$t", 1, -2),
    "more replicas than brokers": new("$t", 1, 2),
    "placed and counted": new("$t", 1, 1, assignments=placed([1])),
    "placed on nobody": new("$t", -1, -1, assignments=placed([])),
    "placed on an unknown broker": new("$t", -1, -1, assignments=placed([7])),
    "placed twice on one broker": new("$t", -1, -1, assignments=placed([1, 1])),
    "placed from partition 1 on": new("$t", -1, -1, assignments=placed([1], first=1)),
    "placed unevenly": new("$t", -1, -1, assignments=placed([1], [1, 7])),
    "placed on a negative broker": new("$t", -1, -1, assignments=placed([-1])),
    "an unknown setting": new("$t", configs=set_to(no_such_setting="1")),
    "a setting that is no number": new("$t", configs=set_to(retention_ms="soon")),
    "a setting out of range": new("$t", configs=set_to(segment_bytes="1")),
    "a negative setting": new("$t", configs=set_to(max_message_bytes="-1")),
    "an unknown policy": new("$t", configs=set_to(cleanup_policy="shred")),
    "a setting without a value": new("$t", configs=set_to(retention_ms=None)),
    "an empty setting": new("$t", configs=set_to(retention_ms="")),
    "a setting without a name": new("$t", configs=[{"name": "", "value": "1"}]),
    "a broker's setting": new("$t", configs=set_to(log_retention_ms="1")),
    "min.insync.replicas of nought": new("$t", configs=set_to(min_insync_replicas="0")),
    "an unknown codec": new("$t", configs=set_to(compression_type="brotli")),
    "a yes that is no truth value": new("$t", configs=set_to(preallocate="yes")),
    "a setting twice": new("$t", configs=[*set_to(retention_ms="1"), *set_to(retention_ms="2")]),
    "local retention above retention": new(
        "$t", configs=set_to(local_retention_ms="2000", retention_ms="1000")
    ),
}
GOOD_TOPICS: Final[dict[str, dict[str, Any]]] = {
    "as many as by default": new("$t", -1, -1),
    "placed by hand": new("$t", -1, -1, assignments=placed([1], [1])),
    "two policies": new("$t", configs=set_to(cleanup_policy="compact,delete")),
    "a number with blanks": new("$t", configs=set_to(retention_ms=" 1000 ")),
    "several settings": new(
        "$t", 3, configs=set_to(retention_ms="-1", compression_type="zstd", min_insync_replicas="1")
    ),
}
SCENARIOS: Final[tuple[Scenario, ...]] = (
    *(
        scenario(
            f"create in v{version}", create(version, new("$t", 2)), create(version, new("$t", 2))
        )
        for version in range(2, 8)
    ),
    *(
        scenario(
            f"create with {what}", create(7, wrong), create(range(2, 8), wrong, validate_only=True)
        )
        for what, wrong in BAD_TOPICS.items()
    ),
    *(
        scenario(
            f"create with {what}",
            create(range(2, 5), right, validate_only=True),
            create(7, right),
            create(4, right, validate_only=True),
            Served("$t", 1),
            metadata(12, "$t"),
        )
        for what, right in GOOD_TOPICS.items()
    ),
    scenario("create odd names", *(create(4, new(name), validate_only=True) for name in NAMES)),
    scenario(
        "create what is only validated",
        *(create(v, new("$t"), validate_only=True) for v in (5, 6, 7)),
    ),
    scenario(
        "create internal and clashing names",
        create(7, new("__consumer_offsets"), validate_only=True),
        create(7, new("__cluster_metadata"), validate_only=True),
        create(7, new("a.clash"), setup=True),
        Served("a.clash", 1),
        create(7, new("a_clash")),
    ),
    scenario("create a topic twice in one request", create(since(2), new("$t"), new("$t"))),
    scenario("create one good and one bad", create(7, new("$t"), new("a/b"), new("$u", 0))),
    scenario("create nothing", create(ALL)),
    scenario("create far too many partitions", create(7, new("$t", 2_000_000), validate_only=True)),
    *(
        scenario(f"delete in v{version}", topic("$t"), delete(version, "$t"), delete(version, "$t"))
        for version in range(1, 6)
    ),
    scenario(
        "delete by id",
        topic("$t"),
        metadata(12, "$t", save={"id": "topics.0.topic_id"}),
        ask("DeleteTopics", 6, topics=[{"name": None, "topic_id": "$id"}], timeout=10_000),
        ask("DeleteTopics", 6, topics=[{"name": None, "topic_id": "$id"}], timeout=10_000),
        ask("DeleteTopics", 6, topics=[{"name": None, "topic_id": NO_SUCH_ID}], timeout=10_000),
    ),
    scenario(
        "delete what cannot be deleted",
        delete(5, "$nothing", "$nothing"),
        delete(since(1), ""),
        delete(5, "a/b"),
        delete(since(1)),
        ask("DeleteTopics", 6, topics=[{"name": "$nothing"}, {"name": "$nothing"}], timeout=10_000),
        ask("DeleteTopics", 6, topics=[{"name": None}], timeout=10_000),
        ask("DeleteTopics", 6, topics=[{"name": "$n", "topic_id": NO_SUCH_ID}], timeout=10_000),
    ),
    scenario(
        "more partitions",
        topic("$t", 2),
        add(ALL, grow("$t", 3), validate_only=True),
        add(ALL, grow("$t", 2)),
        add(ALL, grow("$t", 1)),
        add(3, grow("$t", 0)),
        add(3, grow("$t", -1)),
        add(3, grow("$nothing", 3)),
        add(3, grow("a/b", 3)),
        add(3, grow("$t", 3), grow("$t", 4)),
        add(3, grow("$t", 3, assignments=[])),
        add(3, grow("$t", 3, assignments=[{"broker_ids": [1]}, {"broker_ids": [1]}])),
        add(3, grow("$t", 3, assignments=[{"broker_ids": [7]}])),
        add(3, grow("$t", 3, assignments=[{"broker_ids": []}])),
        add(3, grow("$t", 3, assignments=[{"broker_ids": [1, 1]}])),
        add(3, grow("$t", 3, assignments=[{"broker_ids": [1]}])),
        add(ALL),
        Served("$t", 3),
        metadata(12, "$t"),
    ),
    scenario("metadata of one topic", topic("$t", 3), metadata(ALL, "$t")),
    scenario(
        "metadata with what one may do",
        topic("$t"),
        metadata(since(8), "$t", include_topic_authorized_operations=True),
        metadata(range(8, 11), "$t", include_cluster_authorized_operations=True),
    ),
    scenario("metadata of no topic", ask("Metadata", since(1), topics=[])),
    scenario("metadata of a topic twice", topic("$t"), metadata(since(4), "$t", "$t")),
    scenario("metadata of an unknown topic", metadata(since(4), "$nothing")),
    scenario("metadata of odd names", *(metadata(12, name) for name in NAMES)),
    scenario(
        "metadata that would create odd names", *(metadata(12, n, create=True) for n in NAMES[:-1])
    ),
    scenario(
        "metadata that creates",
        metadata(12, "$made", create=True, once=True),
        Served("$made", 1),
        metadata(ALL, "$made", create=True),
    ),
    scenario(
        "metadata by id",
        topic("$t"),
        metadata(12, "$t", save={"id": "topics.0.topic_id"}),
        ask("Metadata", since(12), topics=[{"topic_id": "$id", "name": None}]),
        ask("Metadata", since(12), topics=[{"topic_id": NO_SUCH_ID, "name": None}]),
        ask("Metadata", since(12), topics=[{"topic_id": "$id", "name": None}, {"name": "$t"}]),
        ask("Metadata", 11, topics=[{"topic_id": "$id", "name": "$t"}]),
        ask("Metadata", 10, topics=[{"topic_id": "$id", "name": None}]),
    ),
    scenario(
        "metadata by neither name nor id",
        ask("Metadata", 12, topics=[{"topic_id": None, "name": None}]),
    ),
    scenario(
        "partitions of odd names described",
        ask(
            "DescribeTopicPartitions",
            0,
            topics=[{"name": "a/b"}, {"name": ""}],
            response_partition_limit=9,
        ),
    ),
    scenario(
        "partitions described",
        topic("$t", 3),
        topic("$u", 2),
        *(
            ask("DescribeTopicPartitions", 0, topics=[{"name": n} for n in names], **more)
            for names, more in (
                (["$t"], {"response_partition_limit": 2000}),
                (["$t", "$u"], {"response_partition_limit": 2}),
                (["$t", "$u"], {"response_partition_limit": 4}),
                (["$t"], {"response_partition_limit": 0}),
                (["$t"], {"response_partition_limit": -1}),
                (["$t"], {"response_partition_limit": 9, "cursor": _cursor("$t", 1)}),
                (["$t", "$u"], {"response_partition_limit": 9, "cursor": _cursor("$u", 0)}),
                (["$t"], {"response_partition_limit": 9, "cursor": _cursor("$t", 9)}),
                (["$t"], {"response_partition_limit": 9, "cursor": _cursor("$t", -1)}),
                (["$t"], {"response_partition_limit": 9, "cursor": _cursor("$nothing", 0)}),
                (["$nothing"], {"response_partition_limit": 9}),
                (["$t", "$t"], {"response_partition_limit": 9}),
            )
        ),
    ),
    scenario(
        "leaders elected",
        topic("$t", 2),
        *(
            ask("ElectLeaders", ALL, election_type=kind, timeout=5_000, topic_partitions=asked)
            for kind in (0, 1)
            for asked in (
                [{"topic": "$t", "partitions": [0, 1]}],
                [{"topic": "$t", "partitions": [9]}],
                [{"topic": "$nothing", "partitions": [0]}],
                [{"topic": "a/b", "partitions": [0]}],
                [],
            )
        ),
        ask("ElectLeaders", 2, election_type=9, timeout=5_000, topic_partitions=[]),
    ),
    scenario(
        "partitions moved",
        topic("$t", 2),
        reassign("$t", 0, [1]),
        reassign("$t", 0, [7]),
        reassign("$t", 0, [1, 1]),
        reassign("$t", 0, []),
        reassign("$t", 0, [-1]),
        reassign("$t", 0, None),
        reassign("$t", 9, [1]),
        reassign("$t", 9, None),
        reassign("$nothing", 0, [1]),
        reassign("$nothing", 0, None),
        ask("AlterPartitionReassignments", ALL, topics=[], timeout=10_000),
        ask("ListPartitionReassignments", 0, topics=None, timeout=10_000),
        ask("ListPartitionReassignments", 0, topics=[], timeout=10_000),
        *(
            ask(
                "ListPartitionReassignments",
                0,
                topics=[{"name": name, "partition_indexes": [0, 9]}],
                timeout=10_000,
            )
            for name in ("$t", "$nothing")
        ),
    ),
)
