"""Requests of the admin: every item to the responsible broker, with retries.

Owns: the rounds. Each round sends the open items to their brokers, one request per broker, all
concurrently; items that went to the wrong broker, or came too early, are retried in the next round
until `default.api.timeout.ms` is over. Never: knows what a request is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Final, TypeAlias, TypeVar

from ottla.client.admin.routing import Route, ToBroker, ToCoordinator, ToLeader, ToTarget
from ottla.client.cluster import Cluster, CoordinatorKind, Target, To
from ottla.client.cluster_view import ClusterView
from ottla.client.errors import ErrorCode, KafkaError, refusal
from ottla.client.retry import Deadline, error_text, retrying
from ottla.config.client import AdminConfig
from ottla.protocol.schema import KioMessage, KioStruct
from ottla.protocol.wire import Fields

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


class Outcomes(dict[Item, Result | Exception]):
    """By item: its result, or the exception.

    >>> outcomes = admin.create_topics([NewTopic("orders")])
    >>> outcomes.failed       # {} when everything went well
    >>> outcomes.all()        # every result; raises the first failure
    """

    @property
    def succeeded(self) -> dict[Item, Result]:
        return {
            item: outcome for item, outcome in self.items() if not isinstance(outcome, Exception)
        }

    @property
    def failed(self) -> dict[Item, Exception]:
        return {item: outcome for item, outcome in self.items() if isinstance(outcome, Exception)}

    def all(self) -> dict[Item, Result]:
        """Every result; raises the first failure there is."""
        for failure in self.failed.values():
            raise failure
        return self.succeeded

    def one(self) -> Result:
        """The result of a request for one item only; raises its failure."""
        [result] = self.all().values()
        return result


RETRIED: Final = frozenset(
    {
        ErrorCode.not_controller,
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.concurrent_transactions,
        ErrorCode.unstable_offset_commit,
        ErrorCode.throttling_quota_exceeded,
        ErrorCode.network_exception,
    }
)
"""The wrong broker, or too early. Every other code is final. An unknown topic is, too, unless the
metadata knows it and the partition's leader does not yet: see `Route.is_behind`.

Each is the code of a broker in its role: the controller, the leader of the item's partition, or the
coordinator of the item's group or transactional id. That role is what `Route.on_wrong_broker` looks
up again.
"""

Answers: TypeAlias = Mapping[Item, Result | Exception]
AskNode: TypeAlias = Callable[[To, list[Item]], Awaitable[Answers[Item, Result]]]


class Session:
    """One admin's access to a cluster, used by all its calls."""

    def __init__(self, cluster: Cluster, config: AdminConfig) -> None:
        self.cluster = cluster
        self.timeout_ms = config.request_timeout_ms
        self.anywhere = ToTarget(cluster, Target.ANY)
        self.controller = ToTarget(cluster, Target.CONTROLLER)
        self.leaders = ToLeader(cluster)
        self.leaders_of_existing = ToLeader(cluster, exists=True)
        self.groups = ToCoordinator(cluster, CoordinatorKind.GROUP)
        self.transactions = ToCoordinator(cluster, CoordinatorKind.TXN)
        self.own_broker = ToBroker(cluster)
        self._api_timeout_ms = config.default_api_timeout_ms

    async def ask(
        self, node: To, key: int, fields: Fields, *, at_most: int | None = None
    ) -> KioMessage:
        """Send one request to one broker, once."""
        return await self.cluster.ask(node, key, fields, at_most=at_most)

    async def once(self, target: Target, key: int, fields: Fields) -> KioMessage:
        """Send a request that is not about items; raises the error of the response."""

        async def ask(node: To, _: list[Target]) -> Answers[Target, KioMessage]:
            reply = await self.ask(node, key, fields)
            return {target: result_or_error(reply, reply)}

        return (await self.for_each([target], ToTarget(self.cluster, target), ask)).one()

    async def brokers(self) -> list[int]:
        """The ids of all brokers, requested once; ConnectionError if none answers."""
        return sorted((await self.cluster.refresh(())).nodes)

    async def view(self, topics: Iterable[str] | None = ()) -> ClusterView:
        """The metadata of these topics, or of all, requested until a broker answers.

        Survives a restart of all brokers: an unreachable broker (OSError) and errors that Kafka
        calls retriable are retried, after pauses of `retry.backoff.ms`, until
        `default.api.timeout.ms` is over; then TimeoutError.
        """
        names = None if topics is None else tuple(topics)
        return await self.retry_lookup(lambda: self.cluster.refresh(names))

    async def retry_lookup(self, look_up: Callable[[], Awaitable[Result]]) -> Result:
        """Retry a look-up that changes nothing, as `view` does."""
        return await retrying(
            self.cluster, look_up, Deadline(self.cluster.clock, self._api_timeout_ms)
        )

    async def on_every_broker(self, key: int, fields: Fields) -> Outcomes[int, KioMessage]:
        """Send the same request to every broker."""

        async def ask(node: To, brokers: list[int]) -> Answers[int, KioMessage]:
            reply = await self.ask(node, key, fields)
            return {brokers[0]: result_or_error(reply, reply)}

        return await self.for_each(sorted((await self.view()).nodes), self.own_broker, ask)

    async def for_each(
        self, items: Iterable[Item], route: Route[Item], ask: AskNode[Item, Result]
    ) -> Outcomes[Item, Result]:
        """Send every item to its broker; the outcome of each, in the order of the items."""
        unique_items = list(dict.fromkeys(items))
        deadline = Deadline(self.cluster.clock, self._api_timeout_ms)
        outcomes = Outcomes[Item, Result]()
        open_items, failures = unique_items, 0
        while open_items:
            outcomes.update(await self._round(open_items, route, ask))
            open_items = [item for item in open_items if may_pass(item, outcomes[item], route)]
            failures += 1
            pause_ms = self.cluster.backoff.after(failures)
            if open_items and deadline.left_ms <= pause_ms:
                outcomes.update({item: _timeout(deadline, outcomes[item]) for item in open_items})
                break
            if open_items:
                await asyncio.sleep(pause_ms / 1e3)
                for item in open_items:
                    with suppress(OSError, KafkaError):  # the next attempt reports the error
                        await route.on_wrong_broker(item)
        return Outcomes({item: _with_item_name(item, outcomes[item]) for item in unique_items})

    async def _round(
        self, items: list[Item], route: Route[Item], ask: AskNode[Item, Result]
    ) -> dict[Item, Result | Exception]:
        outcomes: dict[Item, Result | Exception] = {}
        by_node: dict[To, list[Item]] = {}
        for item in items:
            try:
                by_node.setdefault(await route.of(item), []).append(item)
            except (OSError, KafkaError) as failure:
                outcomes[item] = failure

        async def ask_node(node: To, items: list[Item]) -> None:
            try:
                answers = await ask(node, items)
            except (OSError, KafkaError) as failure:
                outcomes.update(dict.fromkeys(items, failure))
            else:
                for item in items:
                    outcomes[item] = answers[item] if item in answers else _missing(item)

        async with asyncio.TaskGroup() as tasks:
            for node, its_items in by_node.items():
                tasks.create_task(ask_node(node, its_items))
        return outcomes


def is_passing(outcome: object) -> bool:
    """Whether a retry, at another broker or later, may succeed."""
    if isinstance(outcome, KafkaError):
        return outcome.code in RETRIED
    return isinstance(outcome, OSError)


def may_pass(item: Item, outcome: object, route: Route[Item]) -> bool:
    """Whether a retry of the item may succeed: see `is_passing` and `Route.is_behind`."""
    if is_passing(outcome):
        return True
    return isinstance(outcome, KafkaError) and route.is_behind(item, outcome)


def error_of(row: KioStruct) -> KafkaError | None:
    """The error of a row of a response, or of a whole response."""
    if row.error_code is ErrorCode.none:
        return None
    return refusal(row.error_code, getattr(row, "error_message", None))


def result_or_error(row: KioStruct, result: Result) -> Result | KafkaError:
    """The result, or the error if the row has one."""
    error = error_of(row)
    return result if error is None else error


def _with_item_name(item: object, outcome: Result | Exception) -> Result | Exception:
    """An error whose message does not name the item gets one that does."""
    if not isinstance(outcome, KafkaError):
        return outcome
    message = outcome.message or outcome.code.name.replace("_", " ")
    if isinstance(item, Target) or (outcome.message and str(item) in message):
        return outcome
    return refusal(outcome.code, f"{item}: {message}")


def _missing(item: object) -> KafkaError:
    return refusal(ErrorCode.unknown_server_error, f"{item}: missing in the broker's response")


def _timeout(deadline: Deadline, last: object) -> Exception:
    assert isinstance(last, Exception)
    return TimeoutError(f"timed out after {deadline.allowed_ms} ms; last error: {error_text(last)}")
