"""The assignors by the names that members and settings call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ottla.coordinator.group.consumer.range import Subscriber, assign_range
from ottla.coordinator.group.consumer.topic_partitions import Parts
from ottla.coordinator.group.consumer.uniform import assign_uniform
from ottla.model.ids import TopicId

Assignor: TypeAlias = Callable[[Mapping[str, Subscriber], Mapping[TopicId, int]], dict[str, Parts]]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
