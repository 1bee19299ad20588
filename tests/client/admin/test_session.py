"""Rounds of questions, on virtual time, against a cluster that answers as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, cast

from ottla.client.admin.routing import Route, ToTarget
from ottla.client.admin.session import Session, error_of, is_passing, result_or_error
from ottla.client.cluster import Cluster, Target, To
from ottla.client.retry import Backoff
from ottla.config.client import AdminConfig
from ottla.model.clock import Clock, MonoMs, WallMs
from ottla.model.errors import ErrorCode, KafkaError
from tests.fakes.virtual_loop import VirtualLoop

Script = Mapping[str, list[int | Exception]]


class LoopClock:
    def mono_ns(self) -> int:
        return int(asyncio.get_running_loop().time() * 1e9)

    def mono_ms(self) -> MonoMs:
        return MonoMs(int(asyncio.get_running_loop().time() * 1e3))

    def wall_ms(self) -> WallMs:
        return WallMs(self.mono_ms())


class FakeCluster:
    """As much of a cluster as the rounds use."""

    def __init__(self) -> None:
        self.clock: Clock = LoopClock()
        self.backoff = Backoff(100, 1_000, Random(1))
        self.refreshed = 0

    async def refresh(self, topics: Iterable[str] | None = None) -> object:
        self.refreshed += 1
        return None


def rounds(
    script: Script, *, timeout_ms: int = 60_000, route: Route[str] | None = None
) -> tuple[dict[str, Any], list[list[str]]]:
    """What came of each item, and which were asked for in each round."""
    left = {item: list(answers) for item, answers in script.items()}
    asked: list[list[str]] = []

    async def ask(node: To, items: list[str]) -> dict[str, int | Exception]:
        asked.append(items)
        return {item: left[item].pop(0) for item in items}

    async def scenario() -> dict[str, Any]:
        cluster = cast(Cluster, FakeCluster())
        session = Session(cluster, AdminConfig(default_api_timeout_ms=timeout_ms))
        return dict(await session.for_each(script, route or ToTarget(cluster, Target.ANY), ask))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario()), asked


def refusal(code: ErrorCode) -> KafkaError:
    return KafkaError(code, code.name)


def test_only_what_was_asked_at_the_wrong_place_is_asked_again() -> None:
    found, asked = rounds({"a": [1], "b": [refusal(ErrorCode.not_controller), 2]})
    assert found == {"a": 1, "b": 2}
    assert asked == [["a", "b"], ["b"]]


def test_an_answer_is_an_answer_also_when_it_is_a_refusal() -> None:
    found, asked = rounds({"a": [refusal(ErrorCode.unknown_topic_or_partition)]})
    assert found["a"].code is ErrorCode.unknown_topic_or_partition
    assert len(asked) == 1


class NewTopic:
    """The topic of "a" is new, and the leader has not heard of it."""

    async def of(self, item: str) -> To:
        return Target.ANY

    async def on_wrong_broker(self, item: str) -> None:
        pass

    def is_behind(self, item: str, failure: KafkaError) -> bool:
        return item == "a" and failure.code is ErrorCode.unknown_topic_or_partition


def test_a_leader_that_has_not_heard_of_a_new_topic_is_asked_again() -> None:
    unknown = refusal(ErrorCode.unknown_topic_or_partition)
    found, asked = rounds({"a": [unknown, unknown, 1], "b": [unknown]}, route=NewTopic())
    assert found["a"] == 1
    assert found["b"].code is ErrorCode.unknown_topic_or_partition
    assert asked == [["a", "b"], ["a"], ["a"]]


def test_a_broker_that_does_not_come_back_is_given_up_in_time() -> None:
    found, asked = rounds({"a": [ConnectionError("gone")] * 100}, timeout_ms=3_000)
    assert isinstance(found["a"], TimeoutError)
    assert "gone" in str(found["a"])
    assert 2 < len(asked) < 20


def test_a_refusal_without_words_names_the_item() -> None:
    found, _ = rounds({"a": [KafkaError(ErrorCode.invalid_request)]})
    assert str(found["a"]) == "a: invalid request"


def test_an_item_that_a_broker_leaves_out_has_an_error() -> None:
    async def ask(node: To, items: list[str]) -> dict[str, int]:
        return {}

    async def scenario() -> Any:
        cluster = cast(Cluster, FakeCluster())
        session = Session(cluster, AdminConfig())
        return await session.for_each(["a"], ToTarget(cluster, Target.ANY), ask)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        [error] = runner.run(scenario()).values()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.unknown_server_error


class Row:
    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.error_code = code
        self.error_message = message


def test_a_row_is_judged_by_its_code() -> None:
    assert result_or_error(Row(ErrorCode.none), 7) == 7
    assert error_of(Row(ErrorCode.none)) is None
    error = result_or_error(Row(ErrorCode.invalid_request, "why"), 7)
    assert isinstance(error, KafkaError)
    assert str(error) == "why"
    assert not is_passing(error)
    assert is_passing(TimeoutError())
    assert not is_passing(7)
