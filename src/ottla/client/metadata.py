"""Asking for the cluster's metadata, so that all who want to know ask once.

Owns: the view, and the one question that is under way. Never decides who needs to know.

Whoever comes first asks, on behalf of all who wait by then; whoever comes while a question is
under way waits for it, and asks again only if it was not about their topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any, Final

from ottla.client.cluster_view import ClusterView
from ottla.client.connections import Connections
from ottla.client.errors import KafkaError, refusal
from ottla.client.retry import said
from ottla.config.client import ClientConfig
from ottla.model.clock import Clock

METADATA: Final = 3
NEVER: Final = -(1 << 62)


class Metadata:
    """What one client knows of its cluster."""

    def __init__(
        self, config: ClientConfig, clock: Clock, links: Connections, *, auto_create: bool = False
    ) -> None:
        self.view = ClusterView()
        self._config = config
        self._clock = clock
        self._links = links
        self._auto_create = auto_create
        self._wanted: set[str] = set()
        self._wants_all = False
        self._asking: asyncio.Future[None] | None = None
        self._asked = 0
        self._answered = 0
        self._failure: str | None = None
        self._asked_ms = NEVER
        self._learned_ms = NEVER

    @property
    def is_due(self) -> bool:
        """The view is older than `metadata.max.age.ms`."""
        return self._clock.mono_ms() - self._learned_ms >= self._config.metadata_max_age_ms

    async def refresh(self, topics: Iterable[str] | None) -> ClusterView:
        """The view after a reply that was asked for no earlier than now."""
        wanted = None if topics is None else frozenset(topics)
        if wanted is None:
            self._wants_all = True
        else:
            self._wanted |= wanted
        question = self._asked + 1  # one under way may have been asked before we wanted to know
        while self._answered < question:
            if self._asking is None:
                await self._ask_once(wanted)
            else:
                await asyncio.shield(self._asking)
        if self._failure is not None:
            raise ConnectionError(self._failure)
        return self.view

    async def _ask_once(self, wanted: Collection[str] | None) -> None:
        self._asking = asyncio.get_running_loop().create_future()
        try:
            await self._pause(wanted)
            await self._ask_for_all()
        finally:
            asking, self._asking = self._asking, None
            asking.set_result(None)

    async def _ask_for_all(self) -> None:
        """One question, on behalf of everybody who waits."""
        asked = None if self._wants_all else frozenset(self._wanted)
        self._wanted.clear()
        self._wants_all = False
        self._asked += 1
        self._asked_ms = self._clock.mono_ms()
        try:
            reply = await self._first_reply(asked)
        except asyncio.CancelledError:  # the others still want to know
            self._wants_all |= asked is None
            self._wanted.update(asked or ())
            raise
        except OSError as error:
            self._failure = said(error)
        else:
            self._failure = None
            self.view = self.view.learned(reply, asked)
            self._learned_ms = self._clock.mono_ms()
            self._links.forget_bootstrap()
        self._answered = self._asked

    async def _pause(self, wanted: Collection[str] | None) -> None:
        """Ask about what is known already no more often than `retry.backoff.ms`."""
        view = self.view
        if wanted is not None and any(
            name not in view.topics and name not in view.errors for name in wanted
        ):
            return
        wait_ms = self._asked_ms + self._config.retry_backoff_ms - self._clock.mono_ms()
        if wait_ms > 0:
            await asyncio.sleep(wait_ms / 1e3)

    async def _first_reply(self, asked: Collection[str] | None) -> Any:
        """The first answer that a broker gives."""
        failures: list[str] = []
        for link in list(self._links.any(self.view.nodes)):
            try:
                versions = await link.ready()
                version = versions.pick(METADATA)
                reply = await link.ask(
                    METADATA,
                    version,
                    {
                        "topics": _topics(asked, version),
                        "allow_auto_topic_creation": self._auto_create,
                        "include_cluster_authorized_operations": False,
                        "include_topic_authorized_operations": False,
                    },
                    self._config.request_timeout_ms,
                )
                if reply.error_code:
                    raise refusal(reply.error_code)
                if not reply.brokers:
                    raise ConnectionError("it knows of no broker yet")
                return reply
            except (OSError, KafkaError) as error:
                failures.append(f"{link.node}: {said(error)}")
        raise ConnectionError("no broker answered: " + "; ".join(failures))


def _topics(asked: Collection[str] | None, version: int) -> list[dict[str, object]] | None:
    if asked is None:
        return [] if version == 0 else None
    return [{"topic_id": None, "name": name} for name in sorted(asked)]
