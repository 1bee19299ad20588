"""Promises of `ottla.log.directories.names`."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.directories.names import DirectoryKind, DirectoryName, name_of, parse
from ottla.model.ids import TopicPartition

topics = st.text("abcxyzABC019._-", min_size=1, max_size=249).filter(
    lambda topic: topic not in (".", "..")
)
partitions = st.builds(TopicPartition, topics, st.integers(0, 0x7FFF_FFFF))


@pytest.mark.spec("LOG-02")
@given(partitions)
def test_a_partition_directory_is_named_topic_dash_partition(partition: TopicPartition) -> None:
    assert parse(str(partition)) == DirectoryName(partition, DirectoryKind.CURRENT)


@pytest.mark.spec("LOG-08")
@given(partitions, st.uuids())
def test_a_deleted_partition_keeps_its_number_and_fits_a_file_name(
    partition: TopicPartition, unique: UUID
) -> None:
    name = name_of(partition, DirectoryKind.DELETED, unique)
    found = parse(name)
    assert len(name) <= 255
    assert found is not None and found.kind is DirectoryKind.DELETED
    assert found.partition.partition == partition.partition
    assert partition.topic.startswith(found.partition.topic)
    assert name.endswith(f"-{partition.partition}.{unique.hex}-delete")


@pytest.mark.spec("LOG-08")
@given(partitions, st.uuids())
def test_a_future_replica_is_found_again_by_its_name(
    partition: TopicPartition, unique: UUID
) -> None:
    assert parse(name_of(partition, DirectoryKind.FUTURE, unique)) == DirectoryName(
        partition, DirectoryKind.FUTURE
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "lost+found",
        "topic",
        "topic-",
        "-0",
        "topic-x",
        "topic-0.abc-gone",
        "a b-0",
        "t-4294967296",
    ],
)
def test_other_names_are_not_partitions(name: str) -> None:
    assert parse(name) is None


def test_what_kafka_found_to_be_stray_is_recognised() -> None:
    found = parse("logs-12.0d4f6c5e9d0b4b0ea1b2c3d4e5f60718-stray")
    assert found == DirectoryName(TopicPartition("logs", 12), DirectoryKind.STRAY)
