from __future__ import annotations

import resource

from ottla.broker.world import OPEN_FILES_MAX, World
from ottla.log.files import RealDisk


def test_half_of_the_descriptors_are_left_to_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for allowed in (200, soft):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            disk = World.real().disk
            assert isinstance(disk, RealDisk)
            assert disk.open_files.limit == min(OPEN_FILES_MAX, allowed // 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_real_world_has_threads_dice_and_a_name() -> None:
    world, other = World.real(), World.real()
    assert world.pool is not None
    assert world.pool.submit(lambda: 7).result() == 7
    assert world.dice.random() != other.dice.random()
    assert world.host_name()
