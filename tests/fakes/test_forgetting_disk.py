"""The fake disk itself: it must lose what it may and keep what it must."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.fakes.forgetting_disk import ForgettingDisk

DIR = Path("/d")


def fresh() -> ForgettingDisk:
    disk = ForgettingDisk()
    disk.mkdir(DIR)
    disk.sync_everything()
    return disk


def after_crash(seed: int) -> bytes | None:
    """One file: 100 bytes synced, 300 more not."""
    disk = fresh()
    file = disk.open_append(DIR / "f")
    file.append([b"s" * 100])
    file.sync()
    disk.sync_dir(DIR)
    file.append([b"u" * 300])
    disk.crash(seed)
    return disk.read(DIR / "f") if disk.exists(DIR / "f") else None


def test_synced_bytes_survive_every_crash() -> None:
    for seed in range(200):
        content = after_crash(seed)
        assert content is not None
        assert content.startswith(b"s" * 100)


def test_unsynced_bytes_are_kept_lost_torn_and_zeroed_at_times() -> None:
    tails = {(after_crash(seed) or b"")[100:] for seed in range(200)}
    assert b"" in tails
    assert b"u" * 300 in tails
    assert any(tail == b"u" * len(tail) and 0 < len(tail) < 300 for tail in tails)
    assert any(len(tail) == 300 and b"\0" in tail and b"u" in tail for tail in tails)


def test_one_seed_gives_one_outcome() -> None:
    assert [after_crash(seed) for seed in range(20)] == [after_crash(seed) for seed in range(20)]


def test_a_file_whose_folder_was_not_synced_may_vanish_with_its_synced_bytes() -> None:
    found = set()
    for seed in range(20):
        disk = fresh()
        file = disk.open_append(DIR / "f")
        file.append([b"x"])
        file.sync()
        disk.crash(seed)
        found.add(disk.exists(DIR / "f"))
    assert found == {True, False}


def test_a_rename_happens_whole_or_not_at_all_and_in_order() -> None:
    outcomes = set()
    for seed in range(50):
        disk = fresh()
        disk.replace(DIR / "a", b"1")
        disk.rename(DIR / "a", DIR / "b")
        disk.rename(DIR / "b", DIR / "c")
        disk.crash(seed)
        outcomes.add(tuple(disk.list(DIR)))
    assert outcomes == {("a",), ("b",), ("c",)}


def test_a_cut_that_was_not_synced_may_come_back() -> None:
    outcomes = set()
    for seed in range(50):
        disk = fresh()
        disk.replace(DIR / "a", b"0123456789")
        file = disk.open_append(DIR / "a")
        file.truncate(4)
        file.append([b"xy"])
        disk.crash(seed)
        outcomes.add(disk.read(DIR / "a"))
    assert b"0123456789" in outcomes
    assert b"0123xy" in outcomes


def test_a_replaced_file_is_the_old_or_the_new_even_if_it_was_not_synced() -> None:
    for seed in range(50):
        disk = fresh()
        disk.replace(DIR / "a", b"old")
        disk.replace(DIR / "a", b"new")
        disk.crash(seed)
        assert disk.read(DIR / "a") == b"new"


def test_the_death_of_the_process_loses_only_what_it_had_open() -> None:
    disk = fresh()
    file = disk.open_append(DIR / "f")
    file.append([b"unsynced"])
    lock = disk.lock(DIR / ".lock")
    disk.kill()
    with pytest.raises(OSError, match="process that is gone"):
        file.append([b"more"])
    assert disk.read(DIR / "f") == b"unsynced"
    disk.lock(DIR / ".lock")
    lock.release()


def test_a_full_disk_takes_nothing_of_a_write() -> None:
    disk = fresh()
    disk.capacity_bytes = 10
    file = disk.open_append(DIR / "f")
    file.append([b"12345678"])
    with pytest.raises(OSError, match="No space") as error:
        file.append([b"12345678"])
    assert error.value.errno == errno.ENOSPC
    assert file.size == 8


def test_syncs_fail_when_told_to() -> None:
    disk = fresh()
    file = disk.open_append(DIR / "f")
    disk.sync_error = OSError(errno.EIO, "bad disk")
    for act in (file.sync, lambda: disk.sync_dir(DIR), lambda: disk.replace(DIR / "g", b"")):
        with pytest.raises(OSError, match="bad disk"):
            act()
