"""Every broker and every tool must put a group into the same partition."""

from __future__ import annotations

import pytest

from ottla.coordinator.runtime import java_hash, partition_for


@pytest.mark.spec("GRP-03", "GRP-04", "GRP-06")
@pytest.mark.parametrize(("group", "partition"), [("testgroup", 27), ("KafkaConsumerDemo", 35)])
def test_groups_go_where_kafka_puts_them(group: str, partition: int) -> None:
    assert partition_for(group, 50) == partition


@pytest.mark.spec("GRP-05")
def test_the_hash_without_an_opposite_goes_to_partition_0() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0


@pytest.mark.spec("GRP-03")
def test_the_hash_is_over_utf_16_units() -> None:
    assert java_hash("") == 0
    assert java_hash("a") == 97
    assert java_hash("\N{GRINNING FACE}") == 31 * 0xD83D + 0xDE00
