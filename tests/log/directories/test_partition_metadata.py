"""Promises of `ottla.log.directories.partition_metadata`."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.directories import partition_metadata
from ottla.model.ids import NO_TOPIC_ID
from tests.fakes.forgetting_disk import ForgettingDisk

DIR = Path("/d")
ID = UUID("5b9a2f4e-7c11-4d2a-9b67-1f0e2d3c4b5a")


def test_the_file_is_what_kafka_writes() -> None:
    assert partition_metadata.encode(ID) == b"version: 0\ntopic_id: W5ovTnwRTSqbZx8OLTxLWg"


@given(st.uuids())
def test_an_id_is_read_back(topic_id: UUID) -> None:
    disk = ForgettingDisk()
    disk.mkdir(DIR)
    disk.replace(DIR / partition_metadata.FILE_NAME, partition_metadata.encode(topic_id))
    assert partition_metadata.read(disk, DIR) == topic_id


def test_a_final_newline_is_taken_too() -> None:
    assert partition_metadata.decode(partition_metadata.encode(ID) + b"\n") == ID


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 43,
        b"version: 1\ntopic_id: W5ovTnwRTSqbZx8OLTxLWg",
        b"version: 0\ntopic_id: W5ovTnwRTSqbZx8OLTxLW",
        b"topic_id: W5ovTnwRTSqbZx8OLTxLWg",
        b"\xff\xff",
    ],
)
def test_a_damaged_file_names_no_topic(content: bytes) -> None:
    assert partition_metadata.decode(content) == NO_TOPIC_ID


def test_a_missing_file_names_no_topic() -> None:
    disk = ForgettingDisk()
    disk.mkdir(DIR)
    assert partition_metadata.read(disk, DIR) == NO_TOPIC_ID
