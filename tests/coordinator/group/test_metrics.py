"""What the group coordinator counts, and under which names it shows it."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.metrics import MANAGER, SERVER, Counts, publish
from ottla.model.metrics import Registry
from tests.coordinator.group.scene import Scene, offset

DAY_MS = 24 * 3_600_000


def shown(scene: Scene, counts: Counts) -> dict[str, float]:
    registry = Registry()
    publish(registry, counts, lambda: [scene.shard])
    values = {}
    for family in registry.families():
        for metric in family.metrics.values():
            values[family.name] = metric() if callable(metric) else metric.value  # type: ignore[union-attr]
    return {
        name.removeprefix(f"{SERVER}_").removeprefix(f"{MANAGER}_"): value
        for name, value in values.items()
    }


@pytest.mark.spec("MON-22")
def test_commits_removals_and_groups_are_counted() -> None:
    scene = Scene()
    counts = scene.shard.counts
    scene.commit(offset(5))
    scene.commit(offset(6))
    assert shown(scene, counts) == {
        "offset_commit_count_total": 2,
        "offset_expiration_count_total": 0,
        "offset_deletion_count_total": 0,
        "groups_removed_total": 0,
        "num_groups": 1,
    }
    scene.pass_ms(8 * DAY_MS)
    assert shown(scene, counts) == {
        "offset_commit_count_total": 2,
        "offset_expiration_count_total": 1,
        "offset_deletion_count_total": 0,
        "groups_removed_total": 1,
        "num_groups": 0,
    }


@pytest.mark.spec("MON-22")
def test_what_is_loaded_is_not_counted_again() -> None:
    scene = Scene()
    scene.commit(offset(5))
    later = scene.crash()
    assert shown(later, later.shard.counts)["offset_commit_count_total"] == 0
    assert shown(later, later.shard.counts)["num_groups"] == 1
