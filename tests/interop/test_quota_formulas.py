"""Quotas are computed as Apache Kafka computes them: the same steps, by its own classes.

Every history of usage is drawn from a seed, given to Kafka's classes (`java/QuotaDriver.java`) and
to ours, and each throttle time must be the same.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest

from ottla.delay.rates import SimpleRate, Windows
from ottla.model.clock import MonoMs
from ottla.net.waiting_connections import CreationRate
from ottla.security.quotas.client_quotas import ClientQuotas, Usage
from ottla.security.quotas.entities import DEFAULT, Name, Quota, QuotaEntity
from tools import kafka_cache

SOURCE: Final = Path(__file__).parent / "java" / "QuotaDriver.java"
KINDS: Final = {
    "produce": Quota.PRODUCE,
    "fetch": Quota.FETCH,
    "request": Quota.REQUEST,
    "mutation": Quota.MUTATION,
}
USERS: Final = ("alice", "bob")
CLIENTS: Final = ("app", "tool", "")
LEVELS: Final = (
    QuotaEntity("alice", "app"),
    QuotaEntity("alice", DEFAULT),
    QuotaEntity("alice"),
    QuotaEntity(DEFAULT, "app"),
    QuotaEntity(DEFAULT, DEFAULT),
    QuotaEntity(DEFAULT),
    QuotaEntity(None, "app"),
    QuotaEntity(None, DEFAULT),
)
Step = tuple[str, ...]


class Ours:
    """Takes the same steps as the Java program."""

    def step(self, words: Step) -> str:
        match words:
            case ("begin", samples, seconds):
                self._windows = Windows(int(samples), int(seconds) * 1000)
                self._client_quotas = ClientQuotas(self._windows, self._windows)
                self._set: dict[QuotaEntity, dict[str, float]] = {}
                self._simple: dict[float, SimpleRate] = {}
                self._creation: dict[float, CreationRate] = {}
            case ("quota", kind, user, client, value):
                self._change(KINDS[kind], QuotaEntity(name_of(user), name_of(client)), value)
            case ("at", now_ms):
                self._now_ms = MonoMs(int(now_ms))
            case ("record", kind, user, client, value):
                usage = self._usage(kind, user, client)
                return str(0 if usage is None else usage.record(float(value), self._now_ms))
            case ("take-back", kind, user, client, value):
                usage = self._usage(kind, user, client)
                if usage is not None:
                    usage.take_back(float(value), self._now_ms)
            case (("strict" | "permissive") as how, user, client, permits):
                usage = self._usage("mutation", user, client)
                if usage is None:
                    return "0"
                count = int(float(permits))
                allowed, delay_ms = usage.mutate(count, self._now_ms, strict=how == "strict")
                return str(delay_ms) if allowed else f"-1 {delay_ms}"
            case ("rate", kind, bound, value):
                return str(self._rate(kind, float(bound), float(value)))
        return "0"

    def _change(self, quota: Quota, entity: QuotaEntity, value: str) -> None:
        quotas = self._set.setdefault(entity, {})
        if value == "-":
            quotas.pop(quota.value, None)
        else:
            quotas[quota.value] = float(value)
        self._client_quotas.follow({one: dict(some) for one, some in self._set.items() if some})

    def _usage(self, kind: str, user: str, client: str) -> Usage | None:
        client_id = "" if client == "''" else client
        found = self._client_quotas.usage_of(f"User:{user}", client_id, self._now_ms)
        usage: Usage | None = getattr(found, kind)
        return usage

    def _rate(self, kind: str, bound: float, value: float) -> int:
        if kind == "simple":
            rate = self._simple.setdefault(bound, SimpleRate(self._windows))
            rate.record(value, self._now_ms)
            return rate.delay_ms(bound, self._now_ms)
        creation = self._creation.setdefault(bound, CreationRate(self._windows))
        assert value == 1
        return creation.count_one(bound, self._now_ms)


def name_of(word: str) -> Name | None:
    return None if word == "-" else DEFAULT if word == DEFAULT.value else word


def word_of(name: Name | None) -> str:
    return "-" if name is None else DEFAULT.value if name is DEFAULT else str(name)


def kafkas(steps: Sequence[Step]) -> list[str]:
    path = kafka_cache.compiled("server", [SOURCE])
    text = "".join(" ".join(step) + "\n" for step in steps)
    done = subprocess.run(
        kafka_cache.java(path, "QuotaDriver"), input=text, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def quota_step(kind: str, entity: QuotaEntity, value: float | None) -> Step:
    number = "-" if value is None else repr(value)
    return ("quota", kind, word_of(entity.user), word_of(entity.client_id), number)


def times(rng: Random, pauses_ms: Sequence[int]) -> Iterator[Step]:
    """Steps that set the time: mostly bursts, sometimes silence."""
    now_ms = 1_700_000_000_000
    while True:
        now_ms += rng.choice(pauses_ms)
        yield ("at", str(now_ms))


def levels() -> Iterator[Step]:
    """Each combination of levels that have a quota; each of the clients uses some."""
    for chosen in itertools.product((False, True), repeat=len(LEVELS)):
        yield ("begin", "11", "1")
        for number, (entity, is_set) in enumerate(zip(LEVELS, chosen, strict=True)):
            if is_set:
                yield quota_step("produce", entity, 100.0 + 10 * number)
        yield ("at", "1700000000000")
        for user, client in itertools.product(USERS, CLIENTS):
            for _ in range(2):  # the second tells who shares a quota
                yield ("record", "produce", user, client or "''", "1500.0")


def byte_histories(rng: Random) -> Iterator[Step]:
    """Bytes and request time, with quotas that change and fetches that are taken back."""
    for _ in range(30):
        samples, seconds = rng.choice(((11, 1), (11, 1), (5, 2), (2, 1), (1, 3)))
        yield ("begin", str(samples), str(seconds))
        limits: Mapping[str, float] = {"produce": 1e5, "fetch": 2_000.0, "request": 50.0}
        for kind, limit in limits.items():
            yield quota_step(kind, QuotaEntity("alice"), limit)
        pauses_ms = rng.choice(((0, 1, 10, 50), (0, 200, 999, 1000, 1001), (0, 100, 5_000, 30_000)))
        clock = times(rng, pauses_ms)
        for _ in range(150):
            yield next(clock)
            kind = rng.choice(list(limits))
            used = repr(limits[kind] * rng.choice((0.0, 0.01, 0.3, 1.7, 8.0)))
            yield ("record", kind, "alice", "app", used)
            if kind == "fetch" and rng.random() < 0.4:
                yield ("take-back", kind, "alice", "app", used)
            if rng.random() < 0.05:
                yield quota_step(kind, QuotaEntity("alice"), limits[kind] * rng.choice((0.5, 1, 2)))


def mutation_histories(rng: Random) -> Iterator[Step]:
    for _ in range(20):
        yield ("begin", str(rng.choice((11, 3))), str(rng.choice((1, 2))))
        limit = rng.choice((1.0, 2.5, 50.0))
        yield quota_step("mutation", QuotaEntity("alice"), limit)
        clock = times(rng, (0, 10, 300, 2_000, 20_000))
        for _ in range(100):
            yield next(clock)
            how = rng.choice(("strict", "strict", "permissive"))
            yield (how, "alice", "app", repr(float(rng.choice((0, 1, 3, 40)))))


def rate_histories(rng: Random) -> Iterator[Step]:
    """New connections, and the rate that replication is measured by."""
    for _ in range(20):
        yield ("begin", "11", str(rng.choice((1, 1, 2))))
        clock = times(rng, rng.choice(((0, 5, 20), (0, 100, 1_000, 15_000))))
        for _ in range(150):
            yield next(clock)
            yield ("rate", "creation", "10.0", "1.0")
            yield ("rate", "simple", "1000.0", repr(rng.choice((0.0, 10.0, 700.0, 9_000.0))))


@pytest.mark.spec("SEC-07", "WIRE-14", "SEC-09")
def test_every_throttle_time_is_that_of_apache_kafka() -> None:
    rng = Random(14)
    parts = (levels(), byte_histories(rng), mutation_histories(rng), rate_histories(rng))
    steps = list(itertools.chain.from_iterable(parts))
    ours = Ours()
    throttled = 0
    for number, (step, expected) in enumerate(zip(steps, kafkas(steps), strict=True)):
        computed = ours.step(step)
        assert computed == expected, f"step {number}: {step} after {steps[number - 5 : number]}"
        throttled += computed != "0"
    assert throttled > 2_000, "most histories exceed their quotas"
