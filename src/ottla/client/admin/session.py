"""Asking a cluster: every item where it is answered, again where that is known to help.

Owns: the rounds. Each sends what is still open to the brokers it belongs to, one request a broker,
all at once; items that were asked at the wrong place, or too early, go into the next round until
`default.api.timeout.ms` is over. Never: knows what a request is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar

from ottla.client.admin.routing import Route, ToBroker, ToCoordinator, ToLeader, ToTarget
from ottla.client.cluster import Cluster, CoordinatorKind, Target, To
from ottla.client.cluster_view import ClusterView
from ottla.client.errors import ErrorCode, KafkaError, refusal
from ottla.client.retry import Deadline, retrying, said
from ottla.config.client import AdminConfig
from ottla.protocol.wire import Fields

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


class Outcomes(dict[Item, Result | Exception]):
    """By item: its result, or why there is none.

    >>> outcomes = admin.create_topics([NewTopic("orders")])
    >>> outcomes.failed       # {} when everything went well
    >>> outcomes.all()        # every result; raises the first failure
    """

    @property
    def succeeded(self) -> dict[Item, Result]:
        return {item: one for item, one in self.items() if not isinstance(one, Exception)}

    @property
    def failed(self) -> dict[Item, Exception]:
        return {item: one for item, one in self.items() if isinstance(one, Exception)}

    def all(self) -> dict[Item, Result]:
        """Every result; raises the first failure there is."""
        for failure in self.failed.values():
            raise failure
        return self.succeeded

    def one(self) -> Result:
        """The result of a request for one item only; raises its failure."""
        [result] = self.all().values()
        return result


ASK_AGAIN: Final = frozenset(
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
"""Asked at the wrong broker, or too early. All else is an answer, an unknown topic too.

Each is the code of the broker that was asked, in the role it was asked in: the controller, the
leader of the item's partition, or the coordinator of the item's group or transactional id. That
role is what `Route.mistaken` looks up anew.
"""

Answers: TypeAlias = Mapping[Item, Result | Exception]
AskNode: TypeAlias = Callable[[To, list[Item]], Awaitable[Answers[Item, Result]]]


class Session:
    """One admin's way to a cluster: what the calls of every noun stand on."""

    def __init__(self, cluster: Cluster, config: AdminConfig) -> None:
        self.cluster = cluster
        self.timeout_ms = config.request_timeout_ms
        self.anywhere = ToTarget(cluster, Target.ANY)
        self.controller = ToTarget(cluster, Target.CONTROLLER)
        self.leaders = ToLeader(cluster)
        self.groups = ToCoordinator(cluster, CoordinatorKind.GROUP)
        self.transactions = ToCoordinator(cluster, CoordinatorKind.TXN)
        self.own_broker = ToBroker(cluster)
        self._api_timeout_ms = config.default_api_timeout_ms

    async def ask(self, node: To, key: int, fields: Fields, *, at_most: int | None = None) -> Any:
        """One question to one broker, tried once."""
        return await self.cluster.ask(node, key, fields, at_most=at_most)

    async def once(self, target: Target, key: int, fields: Fields) -> Any:
        """A question that is not about items; raises what the reply refuses."""

        async def ask(node: To, _: list[Target]) -> Answers[Target, Any]:
            reply = await self.ask(node, key, fields)
            return {target: judged(reply, reply)}

        return (await self.each([target], ToTarget(self.cluster, target), ask)).one()

    async def brokers(self) -> list[int]:
        """Every broker there is, asked for once; ConnectionError if none answers."""
        return sorted((await self.cluster.refresh(())).nodes)

    async def view(self, topics: Iterable[str] | None = ()) -> ClusterView:
        """The metadata of these topics, or of all, asked for until a broker answers.

        A cluster whose brokers all restart is waited for: a broker that cannot be reached
        (OSError) and refusals that Kafka calls retriable are tried again, after pauses of
        `retry.backoff.ms`, until `default.api.timeout.ms` is over; then TimeoutError.
        """
        wanted = None if topics is None else tuple(topics)
        return await self.outlasting(lambda: self.cluster.refresh(wanted))

    async def outlasting(self, look_up: Callable[[], Awaitable[Result]]) -> Result:
        """Do a look-up that changes nothing until it succeeds, as `view` does."""
        return await retrying(
            self.cluster, look_up, Deadline(self.cluster.clock, self._api_timeout_ms)
        )

    async def on_every_broker(self, key: int, fields: Fields) -> Outcomes[int, Any]:
        """The same question to all."""

        async def ask(node: To, brokers: list[int]) -> Answers[int, Any]:
            reply = await self.ask(node, key, fields)
            return {brokers[0]: judged(reply, reply)}

        return await self.each(sorted((await self.view()).nodes), self.own_broker, ask)

    async def each(
        self, items: Iterable[Item], place: Route[Item], ask: AskNode[Item, Result]
    ) -> Outcomes[Item, Result]:
        """Ask for every item where it belongs; what came of each, in the order of the items."""
        wanted = list(dict.fromkeys(items))
        deadline = Deadline(self.cluster.clock, self._api_timeout_ms)
        found = Outcomes[Item, Result]()
        left, failures = wanted, 0
        while left:
            found.update(await self._round(left, place, ask))
            left = [item for item in left if is_passing(found[item])]
            failures += 1
            pause_ms = self.cluster.backoff.after(failures)
            if left and deadline.left_ms <= pause_ms:
                found.update({item: _too_late(deadline, found[item]) for item in left})
                break
            if left:
                await asyncio.sleep(pause_ms / 1e3)
                for item in left:
                    with suppress(OSError, KafkaError):  # the next try will say what is wrong
                        await place.mistaken(item)
        return Outcomes({item: _named(item, found[item]) for item in wanted})

    async def _round(
        self, items: list[Item], place: Route[Item], ask: AskNode[Item, Result]
    ) -> dict[Item, Result | Exception]:
        found: dict[Item, Result | Exception] = {}
        by_node: dict[To, list[Item]] = {}
        for item in items:
            try:
                by_node.setdefault(await place.of(item), []).append(item)
            except (OSError, KafkaError) as failure:
                found[item] = failure

        async def one(node: To, items: list[Item]) -> None:
            try:
                answers = await ask(node, items)
            except (OSError, KafkaError) as failure:
                found.update(dict.fromkeys(items, failure))
            else:
                silent = refusal(ErrorCode.unknown_server_error, "the broker did not answer for it")
                found.update({item: answers.get(item, silent) for item in items})

        async with asyncio.TaskGroup() as tasks:
            for node, its_items in by_node.items():
                tasks.create_task(one(node, its_items))
        return found


def is_passing(outcome: object) -> bool:
    """Whether asking again, elsewhere or later, may give an answer."""
    if isinstance(outcome, KafkaError):
        return outcome.code in ASK_AGAIN
    return isinstance(outcome, OSError)


def refused(row: Any) -> KafkaError | None:
    """What a row of a reply, or a whole one, says went wrong."""
    if row.error_code is ErrorCode.none:
        return None
    return refusal(row.error_code, getattr(row, "error_message", None))


def judged(row: Any, result: Result) -> Result | KafkaError:
    """The result, unless the row that it was read from refuses it."""
    why_not = refused(row)
    return result if why_not is None else why_not


def _named(item: object, outcome: Result | Exception) -> Result | Exception:
    """A refusal without words says at least what was refused."""
    if isinstance(outcome, KafkaError) and outcome.message is None:
        return refusal(outcome.code, f"{item}: {outcome.code.name.replace('_', ' ')}")
    return outcome


def _too_late(deadline: Deadline, last: object) -> Exception:
    assert isinstance(last, Exception)
    return TimeoutError(f"no answer in {deadline.allowed_ms} ms: {said(last)}")
