"""Promises of `ottla.log.directories.checkpoint_file`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.directories.checkpoint_file import (
    BadCheckpoint,
    decode,
    encode,
    read_offsets,
    write_offsets,
)
from ottla.model.ids import TopicPartition
from tests.fakes.forgetting_disk import ForgettingDisk

PATH = Path("/d/recovery-point-offset-checkpoint")

names = st.text("abcXYZ019._-", min_size=1, max_size=10)
offsets = st.dictionaries(
    st.builds(TopicPartition, names, st.integers(0, 99)), st.integers(0, 2**63 - 1), max_size=8
)


def disk() -> ForgettingDisk:
    made = ForgettingDisk()
    made.mkdir(PATH.parent)
    return made


@pytest.mark.spec("LOG-10", "LOG-11", "LOG-12", "LOG-13", "LOG-14")
def test_a_checkpoint_is_a_version_a_count_and_a_line_for_each_partition() -> None:
    on = disk()
    write_offsets(on, PATH, {TopicPartition("orders", 3): 17, TopicPartition("a.b", 0): 0})
    assert on.read(PATH) == b"0\n2\norders 3 17\na.b 0 0\n"


@given(offsets)
def test_what_is_written_is_read_back(written: dict[TopicPartition, int]) -> None:
    on = disk()
    write_offsets(on, PATH, written)
    assert read_offsets(on, PATH) == written


def test_a_missing_checkpoint_says_nothing() -> None:
    assert read_offsets(disk(), PATH) == {}


@given(offsets.filter(bool), st.data())
def test_a_torn_checkpoint_is_refused_whole(
    written: dict[TopicPartition, int], data: st.DataObject
) -> None:
    on = disk()
    write_offsets(on, PATH, written)
    whole = on.read(PATH)
    on.replace(PATH, whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(BadCheckpoint):
        read_offsets(on, PATH)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 20,
        b"1\n0\n",
        b"0\n",
        b"0\n1\n",
        b"0\n0\nt 0 5\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt 0 5 6\n",
        b"0\n1\nt x 5\n",
        b"0\n1\nt 0 0x5\n",
        b"0\n1\nt 0 5_0\n",
        b"0\n1\nt 0  5\n",
        b"0\n1\nt 0 \xd9\xa3\n",
        b"\xff\xfe\n",
    ],
)
def test_garbage_is_refused(content: bytes) -> None:
    on = disk()
    on.replace(PATH, content)
    with pytest.raises(BadCheckpoint):
        read_offsets(on, PATH)


@pytest.mark.spec("LOG-10")
def test_an_old_or_a_new_checkpoint_survives_a_power_cut_never_a_mix() -> None:
    for seed in range(30):
        on = disk()
        on.sync_everything()
        write_offsets(on, PATH, {TopicPartition("t", 0): 1})
        write_offsets(on, PATH, {TopicPartition("t", 0): 2})
        on.crash(seed)
        assert read_offsets(on, PATH) == {TopicPartition("t", 0): 2}


def test_lines_are_split_at_single_spaces() -> None:
    assert decode(encode(["1 2", "3 4"]), fields=2) == [["1", "2"], ["3", "4"]]
