"""The requests that wait for one broker, merged where a slow broker need not get them one by one.

Owns the order and the merging. Pure: never sends, never waits.

A LeaderAndIsr joins the one that waits already, and so does an UpdateMetadata: the result has the
newest state of each partition. Leaders still come before the metadata that names them. Nothing
passes a request that others may depend on: a StopReplica, a request with the full state, or an
UpdateMetadata with other live brokers than the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, cast

from ottla.controller.runtime.broker_requests import INCREMENTAL, PARTITIONS_MAX, Request
from ottla.metadata.image import DELETED
from ottla.protocol.interbroker import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from ottla.protocol.wire import Fields

HEAD: Final = ("controller_id", "controller_epoch", "broker_epoch")


class RequestQueue:
    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self._fixed = 0
        """How many at the front are neither merged nor passed."""
        self._live_brokers: object = None
        """As the last UpdateMetadata named them."""

    def __len__(self) -> int:
        return len(self._requests)

    def put(self, request: Request) -> None:
        if self._is_barrier(request):
            self._requests.append(request)
            self._fixed = len(self._requests)
            return
        index = self._last(request.key)
        both = None if index is None else merged(self._requests[index], request)
        is_next = index == 0 and len(self._requests) > 1
        if index is None or both is None or (is_next and request.key == UPDATE_METADATA):
            self._requests.append(request)  # or metadata that is next would be put off for ever
        elif request.key == LEADER_AND_ISR:
            self._requests[index] = both
        else:  # metadata goes behind the leaders that were put since
            del self._requests[index]
            self._requests.append(both)

    def pop(self) -> Request:
        self._fixed = max(0, self._fixed - 1)
        return self._requests.popleft()

    def clear(self) -> None:
        self._requests.clear()
        self._fixed = 0

    def _is_barrier(self, request: Request) -> bool:
        live_brokers = self._live_brokers
        if request.key == UPDATE_METADATA:
            self._live_brokers = request.fields["live_brokers"]
        return (
            request.key == STOP_REPLICA
            or request.fields.get("type") != INCREMENTAL
            or (request.key == UPDATE_METADATA and live_brokers != self._live_brokers)
        )

    def _last(self, key: int) -> int | None:
        """Where the last request of this kind waits, if it may be merged."""
        for at in reversed(range(self._fixed, len(self._requests))):
            if self._requests[at].key == key:
                return at
        return None


def merged(earlier: Request, later: Request) -> Request | None:
    """One request with the newest state of each partition; None if the two must stay apart."""
    if any(earlier.fields[name] != later.fields[name] for name in HEAD):
        return None
    topics = _merged_topics(_topics(earlier), _topics(later))
    if topics is None:
        return None
    fields = {**later.fields, "topic_states": topics}
    if "live_leaders" in fields:
        fields["live_leaders"] = _merged_leaders(earlier, later)
    return later._replace(fields=fields, names={**earlier.names, **later.names})


def _topics(request: Request) -> list[Fields]:
    return list(_structs(request, "topic_states"))


def _merged_topics(earlier: list[Fields], later: list[Fields]) -> list[Fields] | None:
    """None if they are too many for one request, or if a topic is deleted or another one."""
    by_name = {topic["topic_name"]: topic for topic in earlier}
    for topic in later:
        before = by_name.get(topic["topic_name"])
        if before is not None:
            if before["topic_id"] != topic["topic_id"]:
                return None
            topic = {**topic, "partition_states": _newest(before, topic)}
        by_name[topic["topic_name"]] = topic
    states = [state for topic in by_name.values() for state in topic["partition_states"]]
    if len(states) > PARTITIONS_MAX or any(state["leader"] == DELETED for state in states):
        return None
    return list(by_name.values())


def _newest(before: Fields, topic: Fields) -> list[Fields]:
    states = {state["partition_index"]: state for state in before["partition_states"]}
    for state in topic["partition_states"]:
        old = states.get(state["partition_index"])
        if old is not None and old.get("is_new"):
            state = {**state, "is_new": True}
        states[state["partition_index"]] = state
    return [states[number] for number in sorted(states)]


def _merged_leaders(earlier: Request, later: Request) -> list[Fields]:
    both = (*_structs(earlier, "live_leaders"), *_structs(later, "live_leaders"))
    leaders = {leader["broker_id"]: leader for leader in both}
    return [leaders[id] for id in sorted(leaders)]


def _structs(request: Request, array: str) -> Iterable[Fields]:
    return cast("Iterable[Fields]", request.fields[array])
