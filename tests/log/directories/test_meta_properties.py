"""Promises of `ottla.log.directories.meta_properties`."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.directories.meta_properties import (
    Identity,
    MetaProperties,
    check_cluster,
    common_identity,
    id_from_text,
    missing_directories,
)
from ottla.log.directories.partition_metadata import id_text
from ottla.model.errors import UserError
from ottla.model.ids import BrokerId

A, B = Path("/data/a"), Path("/data/b")
SEVEN = MetaProperties(BrokerId(7), "cluster")

# As Kafka 4.1 in KRaft mode writes it.
KRAFT = """#
#Sat Nov 15 08:13:00 UTC 2025
cluster.id=MkU3OEVBNTcwNTJENDM2Qg
directory.id=tpx8pd1IQDqJwMfGzXj6GA
node.id=1
version=1
"""


@pytest.mark.spec("LOG-15")
def test_the_file_of_version_0_holds_version_broker_id_and_cluster_id() -> None:
    meta = MetaProperties(BrokerId(3), "abc")
    assert meta.text() == "version=0\ncluster.id=abc\nbroker.id=3\n"
    assert MetaProperties.parse(meta.text(), source="x") == meta


@pytest.mark.spec("LOG-15")
def test_the_file_that_kraft_writes_is_read_and_keeps_its_version() -> None:
    meta = MetaProperties.parse(KRAFT, source="x")
    assert (meta.version, meta.broker_id) == (1, 1)
    assert meta.directory_id == id_from_text("tpx8pd1IQDqJwMfGzXj6GA")
    assert "node.id=1\n" in meta.text()
    assert "directory.id=tpx8pd1IQDqJwMfGzXj6GA\n" in meta.text()


@given(st.uuids())
def test_a_uuid_survives_kafkas_spelling(value: UUID) -> None:
    assert len(id_text(value)) == 22
    assert id_from_text(id_text(value)) == value


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("version=2\n", "version 2"),
        ("version=x\n", "version"),
        ("version=0\nbroker.id=seven\n", "broker.id"),
        ("version=1\nnode.id=1\n", "cluster.id"),
        ("version=1\ncluster.id=c\n", "node.id"),
        ("version=0\ndirectory.id=!\n", "directory.id"),
    ],
)
def test_a_bad_line_is_named_with_its_file(text: str, names: str) -> None:
    with pytest.raises(UserError, match="there") as refusal:
        MetaProperties.parse(text, source="there")
    assert names in str(refusal.value)


@pytest.mark.spec("CTL-72")
def test_an_id_that_only_the_directory_knows_is_used() -> None:
    assert common_identity({A: SEVEN}, None) == Identity(BrokerId(7), "cluster")


@pytest.mark.spec("CTL-72")
def test_a_configured_id_that_differs_from_the_stored_one_is_refused() -> None:
    assert common_identity({A: SEVEN}, BrokerId(7)).broker_id == 7
    with pytest.raises(UserError, match=r"broker\.id 8 .*says 7"):
        common_identity({A: SEVEN}, BrokerId(8))


@pytest.mark.spec("CTL-72")
@pytest.mark.parametrize(
    "other", [SEVEN._replace(broker_id=BrokerId(8)), SEVEN._replace(cluster_id="other")]
)
def test_directories_that_disagree_are_refused(other: MetaProperties) -> None:
    with pytest.raises(UserError, match="disagree"):
        common_identity({A: SEVEN, B: other}, None)


@pytest.mark.spec("CTL-71", "CTL-73")
def test_without_any_id_one_must_be_generated() -> None:
    assert common_identity({}, None) == Identity(None, None)
    assert common_identity({A: MetaProperties(None, "c")}, None) == Identity(None, "c")


@pytest.mark.spec("CTL-71")
def test_a_negative_id_is_refused() -> None:
    with pytest.raises(UserError, match="0 or more"):
        common_identity({}, BrokerId(-5))


def test_a_directory_of_another_cluster_is_refused() -> None:
    check_cluster(Identity(None, None), "mine")
    check_cluster(Identity(None, "mine"), "mine")
    with pytest.raises(UserError, match="cluster id mismatch"):
        check_cluster(Identity(None, "theirs"), "mine")


def test_a_disk_that_was_replaced_is_noticed() -> None:
    old, new = UUID(int=1), UUID(int=2)
    assert missing_directories([], [new]) == frozenset()
    assert missing_directories([old], [old, new]) == frozenset()
    assert missing_directories([old], [new]) == {old}
