"""How many requests of each kind there were, and where their time went.

Owns: the metrics of MON-02 to MON-08 by API, and MON-09's and MON-11's for the loop as a whole.
Never: formats or serves them.

A request's time is cut where it changes hands: waiting to be started, this broker's own work,
waiting for others, waiting for its turn among the replies, being sent. All of it is recorded once,
when its last byte has left, because that costs less than a clock reading at each point.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.model.clock import Clock
from ottla.model.metrics import BUCKETS_MS, Counter, Histogram, Registry
from ottla.net.request_slot import RequestSlot

GROUP: Final = "kafka_network_requestmetrics"
UNKNOWN: Final = "Unknown"
NS_PER_MS: Final = 1e6
QUICK_NS: Final = int(BUCKETS_MS[0] * NS_PER_MS)  # the bound of the first bucket

STAGES: Final = {
    "request_queue_time_ms": "Waiting to be started.",
    "local_time_ms": "Work of this broker.",
    "remote_time_ms": "Waiting for other brokers, for data or for a flush.",
    "response_queue_time_ms": "Waiting for its turn to be sent.",
    "response_send_time_ms": "Being sent.",
    "total_time_ms": "From the last byte received to the last byte sent.",
}


class ApiTimes:
    """The metrics of one kind of request; `stages` in the order of `STAGES`."""

    __slots__ = ("requests", "stages")

    def __init__(self, registry: Registry, request: str) -> None:
        self.stages: tuple[Histogram, ...] = tuple(
            registry.histogram(f"{GROUP}_{name}", doc, request=request)
            for name, doc in STAGES.items()
        )
        self.requests: Counter = registry.counter(
            f"{GROUP}_requests_total", "Requests answered.", request=request
        )


class RequestMetrics:
    """Records requests whose replies have left. Hot: benchmarks/net.py."""

    def __init__(self, registry: Registry, names: Mapping[int, str], clock: Clock) -> None:
        self.registry = registry
        self.names = names
        self.busy_ns = 0  # time spent in turns and sends since the start
        self._clock = clock
        self._apis: dict[int, ApiTimes] = {}

    def record(self, slots: Sequence[RequestSlot], flush_ns: int, sent_ns: int) -> None:
        """The replies of `slots` began to leave at `flush_ns` and were gone at `sent_ns`."""
        key = slots[0].api
        for slot in slots:
            if slot.api != key:
                for single in slots:
                    self._record_alike((single,), flush_ns, sent_ns)
                return
        self._record_alike(slots, flush_ns, sent_ns)

    def _record_alike(self, slots: Sequence[RequestSlot], flush_ns: int, sent_ns: int) -> None:
        """Requests of one kind. Stages that were quick go into the first bucket all together.

        The whole may take longer than each of its stages: a few requests that came in one piece
        wait for each other.
        """
        key = slots[0].api
        api = self._apis.get(key) or self._api(key)
        api.requests.value += len(slots)
        *_, total = api.stages
        send_ns = sent_ns - flush_ns
        quick = long_in_all = queue_ns = local_ns = remote_ns = wait_ns = total_ns = 0
        for slot in slots:
            received, started, worked, done = (
                slot.received_ns, slot.started_ns, slot.local_ns, slot.done_ns,
            )  # fmt: skip
            queued, local, remote, waited, whole = (
                started - received, worked - started, done - worked, flush_ns - done,
                sent_ns - received,
            )  # fmt: skip
            if whole > QUICK_NS:
                if max(queued, local, remote, waited, send_ns) > QUICK_NS:
                    parts = (queued, local, remote, waited, send_ns, whole)
                    for stage, ns in zip(api.stages, parts, strict=True):
                        ms = ns / NS_PER_MS
                        stage.counts[0 if ns <= QUICK_NS else bisect_left(BUCKETS_MS, ms)] += 1
                        stage.total += ms
                    continue
                total.observe(whole / NS_PER_MS)
                long_in_all += 1
            else:
                total_ns += whole
            quick += 1
            queue_ns += queued
            local_ns += local
            remote_ns += remote
            wait_ns += waited
        if quick:
            sums = (queue_ns, local_ns, remote_ns, wait_ns, send_ns * quick, total_ns)
            for stage, ns in zip(api.stages, sums, strict=True):
                stage.counts[0] += quick
                stage.total += ns / NS_PER_MS
            total.counts[0] -= long_in_all

    def authentication_counter(self, listener: str, outcome: str) -> Counter:
        return self.registry.counter(
            f"kafka_server_socketservermetrics_{outcome}_authentication_total",
            f"Clients whose authentication was {outcome}, by TLS or SASL.",
            listener=listener,
        )

    def watch_loop(self) -> None:
        """Offer the share of time the one loop, network and handlers alike, had nothing to do."""
        idle = IdleShare(self, self._clock)
        for name, doc in (
            (
                "kafka_network_socketserver_network_processor_avg_idle_percent",
                "Idle share of the network, 0 to 1.",
            ),
            (
                "kafka_server_kafkarequesthandlerpool_request_handler_avg_idle_percent",
                "Idle share of handlers, 0 to 1.",
            ),
        ):
            self.registry.gauge(name, doc, idle)

    def _api(self, key: int) -> ApiTimes:
        """Keys are the peers' choice: all unknown ones share one name."""
        name = self.names.get(key)
        if name is None:
            api = self._apis.get(-1)
            if api is None:
                api = self._apis[-1] = ApiTimes(self.registry, UNKNOWN)
            return api
        api = self._apis[key] = ApiTimes(self.registry, name)
        return api


class IdleShare:
    """One minus busy time over time passed, since it was last asked a moment ago."""

    def __init__(self, metrics: RequestMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._at_ns = clock.mono_ns()
        self._busy_ns = metrics.busy_ns
        self._share = 1.0

    def __call__(self) -> float:
        passed_ns = self._clock.mono_ns() - self._at_ns
        if passed_ns >= 1_000_000_000:  # two gauges asked together must not spoil each other
            busy_ns = self._metrics.busy_ns - self._busy_ns
            self._share = max(0.0, 1.0 - busy_ns / passed_ns)
            self._at_ns += passed_ns
            self._busy_ns = self._metrics.busy_ns
        return self._share
