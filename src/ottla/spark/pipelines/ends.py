"""Where topics end, asked of the brokers a pipeline reads from.

Owns: one admin client for each cluster, for as long as a run lasts. A broker that cannot be asked
just now is no reason to stop: whoever wants to know hears nothing of its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.spark.pipelines.progress import Ends


class TopicEnds:
    """Asks each cluster in turn; a topic is on the one that knows it."""

    def __init__(self, bootstraps: Iterable[str]) -> None:
        self._bootstraps = tuple(dict.fromkeys(bootstraps))
        self._admins: Sequence[Admin] = ()

    def __enter__(self) -> Self:
        self._admins = [
            Admin(bootstrap_servers=one, default_api_timeout_ms=2_000) for one in self._bootstraps
        ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for admin in self._admins:
            admin.close()

    def __call__(self, partitions: Iterable[str]) -> Ends:
        wanted = {_partition(one): OffsetSpec.LATEST for one in partitions}
        found: dict[str, int] = {}
        for admin in self._admins:
            try:
                outcomes = admin.list_offsets(wanted)
            except (OSError, KafkaError):
                continue
            for tp, listed in outcomes.succeeded.items():
                if listed.offset is not None:
                    found[str(tp)] = listed.offset
        return found


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))
