"""A process that may open few files, or none at all."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OPEN = Path("/proc/self/fd")


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """At most so many more than are open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(descriptor.name) for descriptor in OPEN.iterdir())
    fillers = [os.open("/dev/null", os.O_RDONLY)]
    while fillers[-1] < highest:  # the limit is on the number of a descriptor, not on how many
        fillers.append(os.open("/dev/null", os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (fillers[-1] + 1 + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)


@contextmanager
def no_descriptors() -> Iterator[None]:
    """All that are free are taken."""
    with few_descriptors(0):
        taken: list[int] = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE
        try:
            yield
        finally:
            for descriptor in taken:
                os.close(descriptor)


def held_open(directory: Path) -> int:
    """How many files in a directory this process has open."""
    count = 0
    for descriptor in OPEN.iterdir():
        with suppress(FileNotFoundError):  # the one that lists them
            count += descriptor.readlink().is_relative_to(directory)
    return count
