"""Files synced by the kernel alone."""

from __future__ import annotations

import errno
import os
import select
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.log.files import Handle
from ottla.log.io_uring import WORKERS, SyncRing


@pytest.fixture(params=[True, False], ids=["deferred", "as old kernels do"])
def ring(request: pytest.FixtureRequest) -> Iterator[SyncRing]:
    made = SyncRing.open(8, deferred=request.param)
    if made is None:
        pytest.skip("this kernel, or whoever confines us, gives no io_uring")
    yield made
    made.close()


def written(path: Path, content: bytes = b"x") -> Handle:
    handle = Handle(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    os.write(handle.fd, content)
    return handle


def ended(ring: SyncRing, count: int) -> dict[int, int]:
    """Wait until so many have ended; their error numbers."""
    found: dict[int, int] = {}
    while len(found) < count:
        waiting = select.poll()  # the whole run may have more descriptors open than select takes
        waiting.register(ring, select.POLLIN)
        readable = waiting.poll(60_000)
        assert readable, "nothing ends"
        found |= ring.done()
    return found


def test_every_sync_is_told_of_once_and_by_its_number(ring: SyncRing, tmp_path: Path) -> None:
    files = [written(tmp_path / str(number)) for number in range(8)]
    for turn in range(5):  # round the ring more than once
        syncs = [(100 * turn + number, file) for number, file in enumerate(files)]
        assert ring.submit(syncs) == 8
        assert ended(ring, 8) == dict.fromkeys((number for number, _ in syncs), 0)
    assert ring.done() == []
    assert ring.room == 8


def test_all_that_ended_before_anybody_asked_is_told_of(tmp_path: Path) -> None:
    ring = SyncRing.open(128)
    if ring is None:
        pytest.skip("this kernel, or whoever confines us, gives no io_uring")
    files = [written(tmp_path / str(number)) for number in range(128)]
    ring.submit(list(enumerate(files)))
    for file in files:
        file.sync()  # so that the kernel has had the time for its own
    assert len(ended(ring, 128)) == 128
    ring.close()


def test_a_mark_that_a_worker_set_too_late_stops_nobody(ring: SyncRing, tmp_path: Path) -> None:
    ring._words[ring._flags] |= 1 << 2  # as it is when the kernel's list was seen to before
    os.eventfd_write(ring.fileno(), 1)
    assert ring.done() == []
    ring.submit([(1, written(tmp_path / "a"))])
    assert ended(ring, 1) == {1: 0}


def test_another_threads_ring_takes_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as other:
        ring = other.submit(SyncRing.open, 8).result()
        if ring is None:
            pytest.skip("this kernel, or whoever confines us, gives no io_uring")
        assert ring.submit([(1, written(tmp_path / "a"))]) in (0, 1), "1 where the kernel is older"
        ring.close()


def test_many_files_may_be_synced_at_a_time(ring: SyncRing) -> None:
    before = ring.allow(5)
    if not before:
        pytest.skip("this kernel does not let us say how many")
    assert before == WORKERS
    assert ring.allow(WORKERS) == 5


def test_what_cannot_be_synced_says_why_and_the_others_are_synced(
    ring: SyncRing, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    pipe = Handle(reading)
    ring.submit([(1, written(tmp_path / "a")), (2, pipe), (3, written(tmp_path / "b"))])
    assert ended(ring, 3) == {1: 0, 2: errno.EINVAL, 3: 0}
    os.close(writing)


def test_a_file_stays_open_until_it_is_synced(ring: SyncRing, tmp_path: Path) -> None:
    handle = written(tmp_path / "a", bytes(1 << 20))
    number = handle.fd
    ring.submit([(1, handle)])
    del handle
    os.fstat(number)
    assert ended(ring, 1) == {1: 0}
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_more_than_there_is_room_for_is_a_mistake_of_the_caller(
    ring: SyncRing, tmp_path: Path
) -> None:
    handle = written(tmp_path / "a")
    with pytest.raises(AssertionError, match="lost"):
        ring.submit([(number, handle) for number in range(9)])


def test_where_the_kernel_refuses_there_is_none() -> None:
    assert SyncRing.open(0) is None, "no ring has no entries"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
@pytest.mark.parametrize("which", [0, -1])
def test_the_kernels_workers_stay_where_they_are_placed(which: int, tmp_path: Path) -> None:
    one = sorted(os.sched_getaffinity(0))[which]

    def placed() -> set[str] | None:
        ring = SyncRing.open(8)
        if ring is None or not ring.place(frozenset({one})):
            return None
        ring.submit([(1, written(tmp_path / "file"))])
        assert ended(ring, 1) == {1: 0}
        found = workers_of(threading.get_native_id())
        assert not ring.place(frozenset()), "nowhere is no place"
        ring.close()
        return found

    with ThreadPoolExecutor(1) as other:  # the workers are a thread's, whichever ring it has
        found = other.submit(placed).result()
    if found is None:
        pytest.skip("this kernel gives no io_uring, or does not place its workers")
    assert found == {str(one)}


def workers_of(thread: int) -> set[str]:
    """Where its workers may run, as the kernel says."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # another thread, and it has ended
            if (task / "comm").read_text().strip() == f"iou-wrk-{thread}":
                status = (task / "status").read_text()
                found.add(status.partition("Cpus_allowed_list:")[2].split()[0])
    return found
