"""Requests for the cluster's metadata, shared by concurrent callers.

Owns: the view, and the one request in flight. Never decides when metadata is needed.

The first caller sends a request for the topics of all callers that wait by then. A caller that
comes while a request is in flight waits for it, then for one that was sent after its call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from ottla.client.cluster_view import ClusterView
from ottla.client.connections import Connections
from ottla.client.errors import KafkaError, refusal
from ottla.client.retry import error_text
from ottla.config.client import ClientConfig
from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import AuthenticationFailed
from ottla.protocol.schema import KioMessage

METADATA: Final = 3
NEVER: Final = MonoMs(-(1 << 62))


class Metadata:
    """The cluster metadata of one client."""

    def __init__(
        self, config: ClientConfig, clock: Clock, links: Connections, *, auto_create: bool = False
    ) -> None:
        self.view = ClusterView()
        self._config = config
        self._clock = clock
        self._links = links
        self._auto_create = auto_create
        self._topics_to_request: set[str] = set()
        self._all_requested = False
        self._in_flight: asyncio.Future[None] | None = None
        self._sent_count = 0
        self._answered_count = 0
        self._failure: Exception | None = None
        self._sent_ms = NEVER
        self._learned_ms = NEVER

    @property
    def is_due(self) -> bool:
        """The view is older than `metadata.max.age.ms`."""
        return self._clock.mono_ms() - self._learned_ms >= self._config.metadata_max_age_ms

    async def refresh(self, topics: Iterable[str] | None) -> ClusterView:
        """The view after a response to a request sent no earlier than this call."""
        names = None if topics is None else frozenset(topics)
        if names is None:
            self._all_requested = True
        else:
            self._topics_to_request |= names
        awaited = self._sent_count + 1  # a request in flight may have been sent before this call
        while self._answered_count < awaited:
            if self._in_flight is None:
                await self._request_once(names)
            else:
                await asyncio.shield(self._in_flight)
        if self._failure is not None:  # a copy: several callers may raise it
            raise type(self._failure)(str(self._failure))
        return self.view

    async def _request_once(self, topics: Collection[str] | None) -> None:
        self._in_flight = asyncio.get_running_loop().create_future()
        try:
            await self._pause(topics)
            await self._send_request()
        finally:
            in_flight, self._in_flight = self._in_flight, None
            in_flight.set_result(None)

    async def _send_request(self) -> None:
        """One request, for the topics of every caller that waits."""
        topics = None if self._all_requested else frozenset(self._topics_to_request)
        self._topics_to_request.clear()
        self._all_requested = False
        self._sent_count += 1
        self._sent_ms = self._clock.mono_ms()
        try:
            reply = await self._first_response(topics)
        except asyncio.CancelledError:  # other callers still wait
            self._all_requested |= topics is None
            self._topics_to_request.update(topics or ())
            raise
        except AuthenticationFailed as error:
            self._failure = error.with_traceback(None)
        except OSError as error:
            self._failure = ConnectionError(error_text(error))
        else:
            self._failure = None
            self.view = self.view.with_metadata(reply, topics)
            self._learned_ms = self._clock.mono_ms()
            self._links.forget_bootstrap()
        self._answered_count = self._sent_count

    async def _pause(self, topics: Collection[str] | None) -> None:
        """Request known topics no more often than every `retry.backoff.ms`."""
        view = self.view
        if topics is not None and any(
            name not in view.topics and name not in view.errors for name in topics
        ):
            return
        wait_ms = self._sent_ms + self._config.retry_backoff_ms - self._clock.mono_ms()
        if wait_ms > 0:
            await asyncio.sleep(wait_ms / 1e3)

    async def _first_response(self, topics: Collection[str] | None) -> KioMessage:
        """The first response that a broker sends."""
        failures: list[str] = []
        for link in list(self._links.any(self.view.nodes)):
            try:
                versions = await link.ready()
                version = versions.pick(METADATA)
                reply = await link.ask(
                    METADATA,
                    version,
                    {
                        "topics": _topics(topics, version),
                        "allow_auto_topic_creation": self._auto_create,
                        "include_cluster_authorized_operations": False,
                        "include_topic_authorized_operations": False,
                    },
                    self._config.request_timeout_ms,
                )
                if reply.error_code:
                    raise refusal(reply.error_code)
                if not reply.brokers:
                    raise ConnectionError("its metadata lists no brokers yet")
                return reply
            except AuthenticationFailed:
                raise  # the other brokers would refuse as well
            except (OSError, KafkaError) as error:
                failures.append(f"{link.node}: {error_text(error)}")
        raise ConnectionError("no metadata from any broker: " + "; ".join(failures))


def _topics(topics: Collection[str] | None, version: int) -> list[dict[str, object]] | None:
    if topics is None:
        return [] if version == 0 else None
    return [{"topic_id": None, "name": name} for name in sorted(topics)]
