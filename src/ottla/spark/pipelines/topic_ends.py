"""Where topics end: how far the sources of a pipeline could be read now.

Owns: one connection for each cluster, for as long as a run lasts. A cluster that cannot be asked
just now is no reason to stop: what it last said stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from ottla.client.admin.session import Session
from ottla.model.clock import Clock
from ottla.model.errors import KafkaError
from ottla.spark import partition_offsets
from ottla.spark.connection import Connection
from ottla.spark.options import SourceOptions, stream_source
from ottla.spark.pipelines.progress import Ends
from ottla.spark.pipelines.spec import Source

IMPATIENT: Final[Mapping[str, str]] = {"kafka.default.api.timeout.ms": "2000"}


class TopicEnds:
    """Asks for each source what a query that is up to date would have read."""

    def __init__(self, sources: Iterable[Source], clock: Clock) -> None:
        self._options = [stream_source({**one.options, **IMPATIENT}) for one in sources]
        self._clock = clock
        self._connections: dict[tuple[tuple[str, str], ...], Connection] = {}
        self._stack = ExitStack()
        self._end_offsets: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def __call__(self) -> Ends:
        for options in self._options:
            try:
                connection = self._connection(options)
                self._end_offsets |= connection.run(self._ends(connection.session, options))
            except (OSError, KafkaError):
                continue
        return dict(self._end_offsets)

    async def _ends(self, session: Session, options: SourceOptions) -> Ends:
        there = await partition_offsets.partitions(session, options.subscription)
        found = await partition_offsets.latest(session, options, there, self._clock.wall_ms())
        return {str(tp): offset for tp, offset in found.items()}

    def _connection(self, options: SourceOptions) -> Connection:
        key = tuple(sorted(options.client.items()))
        if key not in self._connections:
            self._connections[key] = self._stack.enter_context(Connection(options.config()))
        return self._connections[key]
