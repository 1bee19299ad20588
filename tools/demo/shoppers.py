"""People in a shop: page views, searches and orders, each kind in a topic of its own.

Owns: what they do, from a seed, and how much of it: the check at the end counts by this. A small
share is garbled, as it is in life: no JSON, nobody, an order of less than nothing.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from threading import Event
from typing import Final, NamedTuple

import ottla

TOPICS: Final = ("page-views", "searches", "orders")
PAGES: Final = ("/", "/shoes", "/hats", "/coats", "/sale", "/basket")
WORDS: Final = ("red shoes", "warm hat", "rain coat", "gift", "size 44")
GARBLED: Final = 0.01
A_SECOND: Final = 500


class Happening(NamedTuple):
    """One record, and whether a pipeline should take it."""

    topic: str
    user: str
    value: bytes
    good: bool


def happenings(dice: Random, now_ms: int) -> Iterator[Happening]:
    """What happens next, for ever."""
    number = 0
    while True:
        number += 1
        yield _happening(dice, f"{now_ms}-{number}")


def _happening(dice: Random, id: str) -> Happening:
    topic = dice.choices(TOPICS, (80, 15, 5))[0]
    user = f"user-{dice.randrange(200)}"
    told: dict[str, object] = {"id": id, "user": user, "at": "?"}
    if topic == "page-views":
        told["page"] = dice.choice(PAGES)
    elif topic == "searches":
        told["words"] = dice.choice(WORDS)
    else:
        told["total"] = round(dice.uniform(5, 400), 2)
    if dice.random() >= GARBLED:
        return Happening(topic, user, json.dumps(told).encode(), True)
    wrong = dice.choice(("text", "nobody", "negative"))
    if wrong == "text":
        return Happening(topic, user, b"<html>oops</html>", False)
    told["user" if wrong == "nobody" else "total"] = None if wrong == "nobody" else -1
    return Happening(topic, user, json.dumps(told).encode(), False)


class Shoppers:
    """Write what happens to a broker, at a steady rate, until they are stopped or leave."""

    def __init__(self, bootstrap: str, seed: int = 1, seconds: float | None = None) -> None:
        self._bootstrap = bootstrap
        self._most = None if seconds is None else int(seconds * A_SECOND)
        self._dice = Random(seed)
        self.sent: Counter[bool] = Counter()
        self.done = Event()

    def go_on_until(self, stop: Event) -> None:
        events = happenings(self._dice, int(time.time() * 1000))
        began = time.monotonic()
        with ottla.Producer(bootstrap_servers=self._bootstrap, linger_ms=50) as producer:
            while not stop.wait(0.05) and self.sent.total() != self._most:
                due = int((time.monotonic() - began) * A_SECOND)
                due = due if self._most is None else min(due, self._most)
                now = _iso(time.time())
                for _ in range(due - self.sent.total()):
                    one = next(events)
                    value = one.value.replace(b'"?"', now, 1)
                    producer.send(one.topic, value, key=one.user.encode())
                    self.sent[one.good] += 1
        self.done.set()


def _iso(seconds: float) -> bytes:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f'"{stamp}.{int(seconds % 1 * 1000):03d}Z"'.encode()
