"""What an exchange and a scenario are, and the words they are written with.

Owns: the shape of scenarios. Never: sends anything.

A scenario is a list of exchanges that both sides hear in the same order. A text that begins with
`$` is a name: a value saved from an earlier reply of the same side (`save={"pid": "producer_id"}`,
then `"$pid"`), or else a fresh one, the same on both sides and nowhere else used. A value with a
method `resolve` (a batch of records) is made when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

NEWEST: Final = 99
ALL: Final = range(NEWEST)
Resolve: TypeAlias = Callable[[str], Any]


@dataclass(frozen=True)
class Ask:
    """One request, or one for each version of a range, and what to remember of its reply."""

    api: str
    versions: range
    fields: Mapping[str, Any]
    line: str = "first"  # which of the scenario's connections
    save: Mapping[str, str] = field(default_factory=dict)  # name -> path in the reply
    setup: bool = False  # compared, but not counted as an exchange
    later: bool = False  # the reply is read by a later `Answer`
    once: bool = False  # errors that pass by themselves are the answer, not asked again
    until: str = ""  # the error to wait for, until what another connection sent is handled


@dataclass(frozen=True)
class Answer:
    """The reply to what was asked on this connection with `later`."""

    line: str


@dataclass(frozen=True)
class Bytes:
    """A frame that no schema describes; all that is compared is whether a reply comes."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Served:
    """Wait until a topic's partitions answer on both sides."""

    topic: str
    partitions: int


@dataclass(frozen=True)
class Assignable:
    """Wait until both group coordinators hand out a topic's partitions."""

    topic: str


Step: TypeAlias = Ask | Answer | Bytes | Served | Assignable
Steps: TypeAlias = Step | Iterable["Steps"]


@dataclass(frozen=True)
class Scenario:
    name: str
    steps: tuple[Step, ...]


def scenario(name: str, *steps: Steps) -> Scenario:
    return Scenario(name, tuple(_flat(steps)))


def ask(api: str, versions: int | range, /, **fields: Any) -> Ask:
    """One exchange: `ask("Heartbeat", 4, group_id="$g")`; fields left out are null, 0 or empty."""
    chosen = range(versions, versions + 1) if isinstance(versions, int) else versions
    options = {name: fields.pop(name) for name in OPTIONS if name in fields}
    return Ask(api, chosen, fields, **options)


OPTIONS: Final = ("line", "save", "setup", "later", "once", "until")


def since(version: int) -> range:
    """This version and all newer ones."""
    return range(version, NEWEST)


def topic(name: str, partitions: int = 1, /, **settings: str) -> tuple[Step, ...]:
    """A topic that both sides have when the next exchange begins; `a_b="c"` sets `a.b`."""
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in settings.items()]
    new = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": configs}
    make = ask("CreateTopics", 4, topics=[new], timeout=10_000, setup=True)
    return make, Served(name, partitions)


def _flat(steps: Steps) -> Iterable[Step]:
    if isinstance(steps, Ask | Answer | Bytes | Served | Assignable):
        yield steps
    else:
        for step in steps:
            yield from _flat(step)
