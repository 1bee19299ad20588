"""Records: written in every odd shape, read, found by time and epoch, deleted."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from tests.interop.answers.batches import GOOD, ODD, Joined, batch
from tests.interop.answers.scenario import ALL, Ask, Scenario, Steps, ask, scenario, since, topic

NO_SUCH_ID: Final = UUID("11111111-2222-3333-4444-555555555555")
BY_ID: Final = since(13)
BY_NAME: Final = range(13)


def produce(versions: int | range, records: Any, **more: Any) -> Ask:
    """Records for partition 0 of the scenario's topic, or for where `more` says."""
    where = {"name": more.pop("name", "$t"), "topic_id": more.pop("topic_id", None)}
    data = [{"index": more.pop("partition", 0), "records": records}]
    more = {"acks": -1, "timeout": 10_000, "transactional_id": None, **more}
    return ask("Produce", versions, topic_data=[{**where, "partition_data": data}], **more)


def fetch(versions: int | range, offset: int = 0, **more: Any) -> Ask:
    """A fetch of partition 0 of the scenario's topic; options of a partition, then of all."""
    part = {
        name: more.pop(name, default)
        for name, default in (
            ("partition", 0),
            ("current_leader_epoch", -1),
            ("last_fetched_epoch", -1),
            ("log_start_offset", -1),
            ("partition_max_bytes", 1 << 20),
        )
    }
    where = {"topic": more.pop("topic", "$t"), "topic_id": more.pop("topic_id", None)}
    topics = [{**where, "partitions": [{**part, "fetch_offset": offset}]}]
    return ask("Fetch", versions, **{**_WHOLE_FETCH, "topics": topics, **more})


_WHOLE_FETCH: Final = {
    "replica_id": -1,
    "min_bytes": 0,
    "max_bytes": 1 << 20,
    "session_epoch": -1,
    "rack_id": "",
}


def offsets(versions: int | range, timestamp: int, **more: Any) -> Ask:
    name = more.pop("name", "$t")
    part = {
        "partition_index": more.pop("partition", 0),
        "timestamp": timestamp,
        "current_leader_epoch": more.pop("current_leader_epoch", -1),
    }
    topics = [{"name": name, "partitions": [part]}]
    return ask("ListOffsets", versions, **{"replica_id": -1, "topics": topics, **more})


def epochs(versions: int | range, epoch: int, **more: Any) -> Ask:
    part = {
        "partition": more.pop("partition", 0),
        "current_leader_epoch": more.pop("current_leader_epoch", -1),
        "leader_epoch": epoch,
    }
    topics = [{"topic": more.pop("topic", "$t"), "partitions": [part]}]
    return ask("OffsetForLeaderEpoch", versions, **{"replica_id": -2, "topics": topics, **more})


def cut_to(versions: int | range, offset: int, **more: Any) -> Ask:
    part = {"partition_index": more.pop("partition", 0), "offset": offset}
    topics = [{"name": more.pop("name", "$t"), "partitions": [part]}]
    return ask("DeleteRecords", versions, topics=topics, timeout=10_000, **more)


def identified(name: str = "$t") -> Ask:
    """Remember the topic's id."""
    topics = [{"name": name}]
    return ask("Metadata", 12, topics=topics, save={"id": "topics.0.topic_id"}, setup=True)


def filled(**settings: str) -> Steps:
    """A topic with five records at two times, and its id."""
    return (
        topic("$t", **settings),
        identified(),
        produce(9, batch("a", "b", "c"), setup=True),
        produce(9, batch("d", "e", stamp=1_700_000_001_000), setup=True),
    )


SCENARIOS: Final[tuple[Scenario, ...]] = (
    scenario(
        "produce and fetch in every version",
        topic("$t"),
        identified(),
        produce(BY_NAME, GOOD),
        produce(BY_ID, GOOD, topic_id="$id"),
        fetch(BY_NAME),
        fetch(BY_ID, topic_id="$id"),
    ),
    *(
        scenario(
            f"produce {what}",
            topic("$t"),
            identified(),
            produce(9, records),
            produce(13, records, topic_id="$id"),
            fetch(12),
        )
        for what, records in ODD.items()
    ),
    *(
        scenario(
            f"produce {what} to a compacted topic",
            topic("$t", cleanup_policy="compact"),
            produce(9, ODD[what]),
            fetch(12),
        )
        for what in ("null keys", "null values", "gzip", "headers", "no times", "two batches")
    ),
    *(
        scenario(
            f"produce {what} to a topic with its own codec",
            topic("$t", compression_type=codec),
            produce(9, records),
            fetch(12, partition_max_bytes=100),
        )
        for what, codec, records in (
            ("records", "gzip", batch("a", "b")),
            ("damaged gzip", "zstd", ODD["gzip whose bytes are damaged"]),
            ("a wrong count", "lz4", ODD["a count one too high"]),
        )
    ),
    scenario(
        "produce to a topic that stamps",
        topic("$t", message_timestamp_type="LogAppendTime"),
        produce(since(3), GOOD),
        fetch(12),
        offsets(7, -1),
    ),
    scenario(
        "produce times too old",
        topic("$t", message_timestamp_before_max_ms="1000"),
        produce(since(3), GOOD),
    ),
    scenario(
        "produce times too new",
        topic("$t", message_timestamp_after_max_ms="1000"),
        produce(since(3), ODD["times far in the future"]),
    ),
    scenario(
        "produce more than a message may have",
        topic("$t", max_message_bytes="100"),
        produce(since(3), batch("x" * 200)),
        produce(9, batch("x")),
    ),
    scenario(
        "produce more than a segment may have",
        topic("$t", segment_bytes="1048576"),
        produce(9, batch("x" * 1_048_000)),
        produce(9, batch("x" * 1_048_400)),
    ),
    scenario(
        "produce zstd in every version", topic("$t"), produce(since(3), ODD["zstd"]), fetch(BY_NAME)
    ),
    scenario(
        "produce where nothing is",
        topic("$t"),
        produce(since(3), GOOD, name="$nothing", topic_id=NO_SUCH_ID),
        produce(since(3), GOOD, partition=9, topic_id=NO_SUCH_ID),
        produce(9, GOOD, partition=-1),
        produce(9, GOOD, name=""),
        produce(9, GOOD, name="a/b"),
        produce(13, GOOD, topic_id=None),
        produce(9, GOOD, name="__consumer_offsets"),
        produce(9, GOOD, name="__transaction_state"),
        ask("Produce", since(3), acks=-1, timeout=1000, transactional_id=None, topic_data=[]),
    ),
    scenario(
        "produce with every acks",
        topic("$t"),
        *(produce(9, GOOD, acks=acks) for acks in (-1, 1, 2, -2, 100)),
        produce(9, GOOD, acks=1, timeout=0),
        produce(9, GOOD, acks=0, later=True),
        fetch(12),
    ),
    scenario("produce with a timeout that is over", topic("$t"), produce(9, GOOD, timeout=-1)),
    scenario(
        "produce too little in sync",
        topic("$t", min_insync_replicas="2"),
        produce(since(3), GOOD),
        produce(9, GOOD, acks=1),
        fetch(12),
    ),
    scenario(
        "produce with a transactional id and plain records",
        topic("$t"),
        produce(9, GOOD, transactional_id="$tx"),
    ),
    scenario(
        "fetch from odd places",
        filled(),
        *(fetch(BY_NAME, at) for at in (5, 6, -1, 99)),
        fetch(BY_ID, 6, topic_id="$id"),
        fetch(12, 1),
        fetch(12, 4),
        fetch(12, partition=9),
        fetch(12, partition=-1),
        fetch(BY_NAME, topic="$nothing"),
        fetch(BY_ID, topic_id=NO_SUCH_ID),
        fetch(BY_ID, topic_id=None),
        fetch(12, topic=""),
        fetch(12, topic="a/b"),
        fetch(12, topics=[]),
    ),
    scenario(
        "fetch with limits",
        filled(),
        *(fetch(12, partition_max_bytes=size) for size in (0, 1, 70, 90, 10_000)),
        *(fetch(12, max_bytes=size) for size in (0, 1, 90)),
        fetch(12, min_bytes=1_000_000, max_wait=10),
        fetch(12, 5, min_bytes=1, max_wait=10),
        fetch(12, 5, min_bytes=1, max_wait=-1),
        fetch(12, isolation_level=1),
        fetch(12, rack_id="somewhere"),
    ),
    scenario(
        "fetch with negative limits",
        filled(),
        fetch(12, partition_max_bytes=-1),
        fetch(12, max_bytes=-1),
        fetch(12, isolation_level=7),
    ),
    scenario(
        "fetch with epochs",
        filled(),
        fetch(range(9, 13), current_leader_epoch=0),
        fetch(range(9, 13), current_leader_epoch=9),
        fetch(range(9, 13), current_leader_epoch=-2),
        fetch(12, 3, last_fetched_epoch=0),
        fetch(12, 3, last_fetched_epoch=9),
        fetch(12, 9, last_fetched_epoch=0),
        fetch(BY_ID, 3, topic_id="$id", current_leader_epoch=0, last_fetched_epoch=0),
    ),
    scenario(
        "fetch in a session",
        filled(),
        fetch(range(7, 13), session_epoch=0, session_id=0, save={"session": "session_id"}),
        fetch(12, 5, session_epoch=1, session_id="$session"),
        fetch(12, session_epoch=2, session_id="$session", topics=[]),
        fetch(12, session_epoch=9, session_id="$session", topics=[]),
        fetch(12, session_epoch=3, session_id=99, topics=[]),
        fetch(12, session_epoch=-2, session_id="$session", topics=[]),
        fetch(12, 6, session_epoch=3, session_id="$session"),
        fetch(
            12,
            session_epoch=4,
            session_id="$session",
            topics=[],
            forgotten_topics_data=[{"topic": "$t", "partitions": [0]}],
        ),
        fetch(12, session_epoch=5, session_id="$session", topics=[]),
        fetch(12, session_epoch=-1, session_id="$session", topics=[]),
        fetch(12, session_epoch=6, session_id="$session", topics=[]),
    ),
    scenario(
        "fetch in a session by id",
        filled(),
        fetch(BY_ID, topic_id="$id", session_epoch=0, save={"session": "session_id"}),
        fetch(18, 5, topic_id="$id", session_epoch=1, session_id="$session"),
        fetch(18, topic_id=NO_SUCH_ID, session_epoch=2, session_id="$session"),
        fetch(18, session_epoch=3, session_id="$session", topics=[]),
        fetch(12, session_epoch=4, session_id="$session", topics=[]),
    ),
    scenario("fetch as a replica", filled(), fetch(12, replica_id=1), fetch(12, replica_id=7)),
    scenario(
        "offsets by time",
        filled(),
        *(offsets(since(1), stamp) for stamp in (-1, -2, 1_700_000_000_000)),
        *(offsets(since(7), -3) for _ in range(1)),
        *(offsets(since(8), -4) for _ in range(1)),
        *(offsets(since(9), -5) for _ in range(1)),
        *(offsets(since(11), -6) for _ in range(1)),
        *(offsets(7, stamp) for stamp in (0, 1_700_000_000_500, 1_700_000_001_001, -4, -5, -6, -9)),
        offsets(6, -3),
        offsets(11, -9),
    ),
    scenario(
        "offsets that nobody has",
        filled(),
        offsets(since(1), -1, name="$nothing"),
        offsets(7, -1, partition=9),
        offsets(7, -1, partition=-1),
        offsets(7, -1, name=""),
        offsets(7, -1, name="a/b"),
        offsets(range(4, 12), -1, current_leader_epoch=0),
        offsets(range(4, 12), -1, current_leader_epoch=9),
        offsets(7, -1, isolation_level=1),
        offsets(7, -1, replica_id=1),
        offsets(7, -1, replica_id=-2),
        offsets(7, -2, topics=[]),
        ask(
            "ListOffsets",
            7,
            replica_id=-1,
            topics=[
                {
                    "name": "$t",
                    "partitions": [
                        {"partition_index": 0, "timestamp": -1},
                        {"partition_index": 0, "timestamp": -2},
                    ],
                }
            ],
        ),
    ),
    scenario("offsets at an unknown isolation level", filled(), offsets(7, -1, isolation_level=9)),
    scenario(
        "offsets of an empty topic",
        topic("$t"),
        *(offsets(11, stamp) for stamp in (-1, -2, -3, -4, -5, 0, 1_700_000_000_000)),
    ),
    scenario(
        "where epochs end",
        filled(),
        *(epochs(ALL, epoch) for epoch in (0, 1, -1)),
        epochs(ALL, 0, current_leader_epoch=0),
        epochs(ALL, 0, current_leader_epoch=9),
        epochs(ALL, 0, topic="$nothing"),
        epochs(ALL, 0, partition=9),
        epochs(4, 0, replica_id=-1),
        epochs(4, 0, replica_id=1),
        epochs(4, 0, topics=[]),
    ),
    scenario(
        "records deleted",
        filled(),
        cut_to(ALL, 0),
        cut_to(ALL, 2),
        cut_to(2, 1),
        cut_to(2, 6),
        cut_to(2, -2),
        cut_to(2, 3, partition=9),
        cut_to(ALL, 3, name="$nothing"),
        cut_to(2, 3, name="a/b"),
        cut_to(2, 3, name="__consumer_offsets"),
        fetch(12, 0),
        fetch(12, 2),
        offsets(7, -2),
        cut_to(2, -1),
        offsets(7, -2),
        fetch(12, 5),
        ask("DeleteRecords", ALL, topics=[], timeout=1000),
    ),
    scenario(
        "records deleted from a compacted topic", filled(cleanup_policy="compact"), cut_to(ALL, 2)
    ),
    scenario(
        "several partitions at once",
        topic("$t", 2),
        ask(
            "Produce",
            9,
            acks=-1,
            timeout=10_000,
            transactional_id=None,
            topic_data=[
                {
                    "name": "$t",
                    "partition_data": [
                        {"index": 0, "records": GOOD},
                        {"index": 1, "records": ODD["a wrong checksum"]},
                        {"index": 2, "records": GOOD},
                    ],
                },
                {"name": "$nothing", "partition_data": [{"index": 0, "records": GOOD}]},
            ],
        ),
    ),
    scenario(
        "a partition named twice",
        topic("$t"),
        ask(
            "Produce",
            9,
            acks=-1,
            timeout=10_000,
            transactional_id=None,
            topic_data=[
                {"name": "$t", "partition_data": [{"index": 0, "records": GOOD}]},
                {"name": "$t", "partition_data": [{"index": 0, "records": Joined([batch("z")])}]},
            ],
        ),
    ),
)
