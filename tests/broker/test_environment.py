"""What a broker takes from the machine it runs on."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

from ottla.broker.descriptors import LOG_FILES_MAX
from ottla.broker.environment import Environment
from ottla.log.files import RealDisk


def test_half_of_the_descriptors_are_left_to_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(list(Path("/proc/self/fd").iterdir())) + 50  # other tests may hold some
    try:
        for allowed in (few, soft):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            with closing(Environment.real()) as environment:
                assert isinstance(environment.disk, RealDisk)
                assert environment.disk.open_files.limit == min(LOG_FILES_MAX, allowed // 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_real_world_has_threads_dice_and_a_name() -> None:
    with closing(Environment.real()) as environment, closing(Environment.real()) as other:
        assert environment.pool is not None
        assert environment.pool.submit(lambda: 7).result() == 7
        assert environment.dice.random() != other.dice.random()
        assert environment.host_name()
