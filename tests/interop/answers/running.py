"""Scenarios played to Apache Kafka and to Ottla, and what came of each exchange.

Owns: the order of the exchanges, and waiting for what a broker does after it has replied.
Never: says which difference is meant.

A read that differs is asked again for a short while: either side may not have taken in yet what
it was told just before. So is anything that is answered with an error that passes by itself.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from tests.interop.answers.compare import Difference, differences
from tests.interop.answers.plain import TEXTS, Labels, plain
from tests.interop.answers.scenario import (
    Answer,
    Ask,
    Assignable,
    Bytes,
    Scenario,
    Served,
    Step,
)
from tests.interop.answers.side import KEYS, Reply, Side

READS: Final = frozenset(
    {
        "ConsumerGroupDescribe",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "DescribeUserScramCredentials",
        "FindCoordinator",
        "ListConfigResources",
        "ListGroups",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
    }
)
PASSING: Final = frozenset(
    {
        "concurrent_transactions",
        "coordinator_load_in_progress",
        "coordinator_not_available",
        "not_coordinator",
    }
)
# What lists everything shows the other scenarios, too: only what is named in this one is compared.
LISTS: Final = {
    "ListGroups": ("groups", "group_id"),
    "ListTransactions": ("transaction_states", "transactional_id"),
    "ListConfigResources": ("config_resources", "resource_name"),
}
AGAIN_S: Final = 3.0
SERVED_S: Final = 30.0
PAUSE_S: Final = 0.03
Excused: TypeAlias = Callable[[str, str, Difference], bool]
_numbers: Final = itertools.count(1)


class Exchange(NamedTuple):
    """One request with both replies, and where they differ."""

    scenario: str
    api: str
    version: int
    setup: bool
    different: tuple[Difference, ...]

    @property
    def in_text_only(self) -> bool:
        """Whether only the words differ in which an error is explained."""
        return bool(self.different) and all(is_text(found) for found in self.different)


def is_text(found: Difference) -> bool:
    """Whether both sides explain an error, in other words, or only one of them explains it."""
    return found.path.rpartition("/")[2] in TEXTS


@dataclass
class Pair:
    """An Apache Kafka and an Ottla that hear the same."""

    reference: Side
    ours: Side
    excused: Excused
    again_s: float = AGAIN_S  # how long a read that differs is asked again

    def __post_init__(self) -> None:
        theirs, ours = offered(self.reference), offered(self.ours)
        self._common = {key: found & theirs.get(key, frozenset()) for key, found in ours.items()}

    @property
    def both(self) -> tuple[Side, Side]:
        return self.reference, self.ours

    def play(self, scenario: Scenario) -> Iterator[Exchange]:
        """Every exchange of a scenario; of ranges, the versions that both sides offer."""
        number = next(_numbers)
        labels = (Labels(), Labels())
        for side in self.both:
            side.begin(number)
        try:
            for step in scenario.steps:
                for version in _versions(step, self._common):
                    yield from self._step(scenario, step, version, labels)
        finally:
            for side in self.both:
                side.end()

    def _step(
        self, scenario: Scenario, step: Step, version: int, labels: tuple[Labels, Labels]
    ) -> Iterator[Exchange]:
        if isinstance(step, Served):
            for side in self.both:
                _until_served(side, step)
        elif isinstance(step, Assignable):
            for side in self.both:
                _until_assignable(side, step)
        elif isinstance(step, Bytes):
            theirs, ours = (side.ask_bytes(step.data) for side in self.both)
            yield self._exchange(scenario, "(bytes)", step, (theirs, ours), labels)
        elif isinstance(step, Answer):
            theirs, ours = (side.receive(step.line) for side in self.both)
            yield self._exchange(scenario, theirs.api, step, (theirs, ours), labels)
        elif step.later:
            for side in self.both:
                side.send(step.line, step.api, version, step.fields)
        else:
            yield self._asked(scenario, step, version, labels)

    def _asked(
        self, scenario: Scenario, step: Ask, version: int, labels: tuple[Labels, Labels]
    ) -> Exchange:
        deadline = time.monotonic() + self.again_s
        while True:
            theirs, ours = (_ask(side, step, version) for side in self.both)
            found = self._exchange(scenario, step.api, step, (theirs, ours), labels)
            unexcused = [one for one in found.different if not is_text(one)]
            unexcused = [one for one in unexcused if not self.excused(scenario.name, step.api, one)]
            if not unexcused or not _is_read(step) or time.monotonic() > deadline:
                break
            time.sleep(PAUSE_S)
        for side, reply in zip(self.both, (theirs, ours), strict=True):
            for name, path in step.save.items():
                side.saved[name] = _at(reply.entity, path)
        return found

    def _exchange(
        self,
        scenario: Scenario,
        api: str,
        step: Step,
        replies: tuple[Reply, Reply],
        labels: tuple[Labels, Labels],
    ) -> Exchange:
        theirs, ours = (_plain(*pair) for pair in zip(replies, labels, strict=True))
        for reply, side in ((theirs, self.reference), (ours, self.ours)):
            _keep_own(reply, api, frozenset(side.fresh.values()))
        different = tuple(differences(theirs, ours))
        setup = isinstance(step, Ask) and step.setup
        return Exchange(scenario.name, api, replies[0].version, setup, different)


def offered(side: Side) -> dict[int, frozenset[int]]:
    """The versions of each API that a broker offers."""
    side.begin(0)
    entity = side.ask("first", "ApiVersions", 0, {}).entity
    side.end()
    return {
        key.api_key: frozenset(range(key.min_version, key.max_version + 1))
        for key in entity.api_keys
    }


def warm(side: Side) -> None:
    """Until both kinds of coordinator answer: their topics are made when one is first asked for."""
    side.begin(0)
    for kind, api, fields in (
        (0, "OffsetFetch", {"group_id": "warm", "topics": []}),
        (1, "InitProducerId", {"transactional_id": "warm", "transaction_timeout": 60_000}),
    ):
        deadline = time.monotonic() + SERVED_S
        while True:
            side.ask("first", "FindCoordinator", 3, {"key": "warm", "key_type": kind})
            if side.ask("first", api, 4, fields).entity.error_code.name == "none":
                break
            assert time.monotonic() < deadline, f"{side.name}: no coordinator for {api}"
            time.sleep(PAUSE_S)
    side.end()


def _versions(step: Step, common: Mapping[int, frozenset[int]]) -> list[int]:
    if not isinstance(step, Ask):
        return [0]
    if len(step.versions) == 1:
        return list(step.versions)
    return sorted(common.get(KEYS[step.api], frozenset()) & set(step.versions))


def _is_read(ask: Ask) -> bool:
    """Whether asking again changes nothing; a fetch outside of a session is a read, too."""
    return ask.api in READS or (ask.api == "Fetch" and ask.fields["session_epoch"] == -1)


def _ask(side: Side, step: Ask, version: int) -> Reply:
    """The reply, asked again while it is an error that passes by itself."""
    deadline = time.monotonic() + AGAIN_S
    while True:
        reply = side.ask(step.line, step.api, version, step.fields)
        again = step.until not in repr(reply.entity) if step.until else _passes(reply)
        if step.once or not again or time.monotonic() > deadline:
            return reply
        time.sleep(PAUSE_S)


def _passes(reply: Reply) -> bool:
    return reply.entity is not None and any(code in repr(reply.entity) for code in PASSING)


def _plain(reply: Reply, labels: Labels) -> dict[str, Any]:
    return {"": reply.instead} if reply.entity is None else plain(reply.entity, labels)


def _keep_own(reply: dict[str, Any], api: str, names: frozenset[str]) -> None:
    if api in LISTS and "" not in reply:
        array, field = LISTS[api]
        reply[array] = [one for one in reply[array] if one[field] in names]


def _at(entity: Any, path: str) -> Any:
    """The value at `topics.0.topic_id` of a reply; None when there is none."""
    for part in path.split("."):
        try:
            entity = entity[int(part)] if part.isdigit() else getattr(entity, part)
        except (AttributeError, IndexError):
            return None
    return entity


def _until_served(side: Side, step: Served) -> None:
    """Until every partition tells its offsets: a broker may still be taking them over."""
    name = step.topic[1:] if step.topic.startswith("$") else step.topic
    wanted = side.resolve(name) if step.topic.startswith("$") else name
    partitions = [
        {"partition_index": index, "timestamp": -1, "current_leader_epoch": -1}
        for index in range(step.partitions)
    ]
    fields = {"replica_id": -1, "topics": [{"name": wanted, "partitions": partitions}]}
    deadline = time.monotonic() + SERVED_S
    while True:
        reply = side.ask("served", "ListOffsets", 4, fields).entity
        codes = {one.error_code.name for topic in reply.topics for one in topic.partitions}
        if codes == {"none"}:
            return
        assert time.monotonic() < deadline, f"{side.name}: {wanted} is not served: {codes}"
        time.sleep(PAUSE_S)


def _until_assignable(side: Side, step: Assignable) -> None:
    """Until a member of another group is given partitions: coordinators learn of topics late."""
    fields = {
        "group_id": side.resolve("probe"),
        "member_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "rebalance_timeout": 30_000,
        "subscribed_topic_names": [side.resolve(step.topic[1:])],
        "topic_partitions": [],
    }
    deadline = time.monotonic() + SERVED_S
    while True:
        reply = side.ask("served", "ConsumerGroupHeartbeat", 1, fields).entity
        if reply.assignment is not None and reply.assignment.topic_partitions:
            break
        assert time.monotonic() < deadline, f"{side.name}: nobody is given {step.topic}"
        time.sleep(PAUSE_S)
    side.ask("served", "ConsumerGroupHeartbeat", 1, {**fields, "member_epoch": -1})
