"""The controller's task: it stands for election, and while it is active it decides and acts.

Owns one queue with one consumer, so decisions never race: changes in the store, requests and
replies are all put there and handled in order. A step is written before it is believed, and
believed before it is told. Never decides: `machine.py` does.

The queue needs no bound of its own: a watch puts one change and is then spent, a broker has one
request in flight, and whoever asks waits for the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any, Final, TypeAlias

from ottla.controller.effects import Step
from ottla.controller.event_size import weight
from ottla.controller.events import BalanceDue, Event, RulesChanged
from ottla.controller.machine import on_event
from ottla.controller.runtime import controller_election
from ottla.controller.runtime.broker_requests import requests
from ottla.controller.runtime.controller_election import ControllerTerm
from ottla.controller.runtime.fenced_writer import ControllerFenced, FencedWriter
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.runtime.outbox import BrokerLinks, Outbox
from ottla.controller.runtime.pending_requests import PendingRequests
from ottla.controller.runtime.store_reader import StoreReader
from ottla.controller.state import ControllerState, TopicRules
from ottla.delay.slices import in_slices
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, BrokerId, TopicPartition
from ottla.shared_state.registration import Registration, RegistrationError
from ottla.store import paths
from ottla.store.changes import (
    Change,
    ControllerMoved,
    PartitionsChanged,
    PreferredElectionNodeChanged,
    ReassignmentNodeChanged,
    StateChanged,
    change_of_data,
)
from ottla.store.port import Op, Session, SessionExpired, Store, StoreError, StoreUnavailable

log = logging.getLogger(__name__)

CONFLICTS_MAX: Final = 10
STORE_RETRY_S: Final = 0.5
FIRST_BALANCE_S: Final = 5.0
DECIDED_AT_ONCE: Final = 100
"""Partitions that an event may concern to be decided on the loop."""
REQUESTS_AT_ONCE: Final = 4
"""Requests prepared between two turns of the loop; each speaks of some hundred partitions."""

Item: TypeAlias = Change | Event | Session


class ControllerLoop:
    def __init__(
        self,
        store: Store,
        links: BrokerLinks,
        registration: Registration,
        clock: Clock,
        dice: Random,
        *,
        measures: ControllerMetrics,
    ) -> None:
        self._store = store
        self._links = links
        self._registration = registration
        self._clock = clock
        self._measures = measures
        self._writer = FencedWriter(store)
        self._readings = StoreReader(store, self.put, dice)
        self._asks = PendingRequests()
        self._queue: deque[tuple[int, Item]] = deque()
        self._arrived = asyncio.Event()
        self._outbox: Outbox | None = None
        self.state = ControllerState(registration.broker_id)
        self._term: ControllerTerm | None = None
        """Of the office we hold, from the moment it was taken."""
        self._just_started = True
        self.active_id: BrokerId = NO_BROKER
        self.settled = asyncio.Event()
        """Set when the first election is over, won or lost."""

    @property
    def is_active(self) -> bool:
        return self.active_id == self.state.broker_id and self.state.epoch > 0

    def put(self, item: Item) -> None:
        self._queue.append((self._clock.mono_ns(), item))
        self._arrived.set()

    async def ask(self, event_of: Callable[[int], Event]) -> object:
        """Put a question to the active controller and wait for the answer."""
        number, answer = self.open_ask()
        self.put(event_of(number))
        try:
            return await answer
        finally:
            self.close_ask(number)

    def open_ask(self) -> tuple[int, asyncio.Future[object]]:
        if not self.is_active:
            raise KafkaError(ErrorCode.not_controller, "This is not the active controller.")
        return self._asks.open()

    def close_ask(self, number: int) -> None:
        self._asks.close(number)

    def set_rules(self, rules: TopicRules) -> None:
        if self.is_active:
            self.put(RulesChanged(rules))
        else:
            self.state = replace(self.state, rules=rules)

    async def run(self, balance_every_s: float | None) -> None:
        """Until cancelled. The broker must be registered before."""
        self._store.on_session(self._session_changed)
        self._measures.watch(lambda: self.state, lambda: len(self._queue))
        async with asyncio.TaskGroup() as tasks:
            self._outbox = Outbox(self._links, self.put, tasks, self._measures)
            if balance_every_s is not None:
                tasks.create_task(self._balance(balance_every_s))
            await self._guarded(self._elect(), Session.CONNECTED)
            self.settled.set()
            while True:
                await self._next()

    # one item after the other

    async def _next(self) -> None:
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        put_ns, item = self._queue.popleft()
        self._measures.waited((self._clock.mono_ns() - put_ns) / 1e6)
        again = item if isinstance(item, Session) else Session.CONNECTED
        with self._measures.timing(item):
            await self._guarded(self._process(item), again)

    async def _guarded(self, work: Coroutine[Any, Any, None], again: Session) -> None:
        """One event's fault does not stop the others. After a silence of the store, start over."""
        try:
            await work
        except SessionExpired:
            log.warning("the session with the store is over")
        except StoreUnavailable as gone:
            log.warning("the store cannot be reached: %s", gone)
            self._asks.refuse_all()  # they may ask again; what they wait for may never come
            await asyncio.sleep(STORE_RETRY_S)
            self.put(again)  # what was written is unknown: read it all again
        except RegistrationError:
            raise
        except Exception:
            log.exception("the controller could not handle an event")

    async def _process(self, item: Item) -> None:
        if isinstance(item, Session):
            await self._session(item)
        elif isinstance(item, ControllerMoved):
            await self._controller_moved()
        elif self.is_active:  # everything else is meant for the controller in office
            event = (
                await self._readings.event(item, self.state) if isinstance(item, Change) else item
            )
            if event is not None:
                await self._handle(event)

    async def _handle(self, event: Event) -> None:
        """Decide, write, believe, tell. A conflict means we believed wrong: read, decide again."""
        for _ in range(CONFLICTS_MAX):
            step = await self._decide(event)
            try:
                await self._writer.write(step.writes, step.state.epoch_version)
            except ControllerFenced:
                log.warning("another controller was elected: resigning")
                self._resign()
                return
            except SessionExpired:
                raise
            except StoreError as conflict:
                log.info("%s met %s: reading again", type(event).__name__, conflict)
                await self._reread(step.writes)
                continue
            await self._commit(step)
            return
        raise RuntimeError(f"conflicts without end: {event}")

    async def _decide(self, event: Event) -> Step:
        """What concerns many partitions is decided on a thread: it is pure, and it may take long.

        Meanwhile nothing here changes: this task alone replaces the state while it is active.
        """
        if weight(self.state, event) <= DECIDED_AT_ONCE:
            return on_event(self.state, event)
        running = asyncio.get_running_loop()
        return await running.run_in_executor(None, on_event, self.state, event)

    async def _commit(self, step: Step) -> None:
        before, self.state = self.state, step.state
        for note in step.notes:
            log.warning(note)
        assert self._outbox is not None, "the loop runs"
        self._outbox.follow(step.state.brokers)
        async for request in in_slices(requests(step.state, step.sends), REQUESTS_AT_ONCE):
            self._outbox.send((request,))
        for number, answer in step.replies:
            self._asks.answer(number, answer)
        if step.state.topics is not before.topics:
            new = step.state.topics.keys() - before.topics.keys()
            versions = {name: step.state.topics[name].version for name in new}
            await self._readings.watch_topics(versions)

    async def _reread(self, writes: tuple[Op, ...]) -> None:
        """Believe what is there now, for all that the failed step wanted to write."""
        await self._handle(await self._readings.topics(self.state.topics))
        changes = {change_of_data(op.path) for op in writes if _is_of_topic(op.path)}
        for change in changes:
            if isinstance(change, PartitionsChanged) and change.topic in self.state.topics:
                seen = await self._readings.partitions(change.topic)
                if seen is not None:
                    await self._handle(seen)
        states = [TopicPartition(*change) for change in changes if isinstance(change, StateChanged)]
        await self._handle(await self._readings.states(sorted(states)))

    # in and out of office

    async def _elect(self) -> None:
        """Take the office if it is free."""
        holder = await self._readings.controller()
        returned, self._just_started = self._just_started and holder is None, False
        if holder is None:
            self._term = await controller_election.try_to_become_controller(
                self._store, self.state.broker_id, self._clock.wall_ms()
            )
            holder = await self._readings.controller()
        if self._term is not None and holder == self.state.broker_id:
            await self._enter_office(self._term, returned=returned)
        else:
            self.active_id = NO_BROKER if holder is None else holder

    async def _enter_office(self, term: ControllerTerm, *, returned: bool) -> None:
        log.info("broker %d is the controller, epoch %d", self.state.broker_id, term.epoch)
        elected = await self._readings.everything(term)
        await self._handle(elected._replace(returned=returned))
        self.active_id = self.state.broker_id
        for change in (PreferredElectionNodeChanged(), ReassignmentNodeChanged()):
            self.put(change)  # what was asked of an earlier controller

    async def _controller_moved(self) -> None:
        """Gone: stand for election. Changed: know who it is, and never fight for it."""
        holder = await self._readings.controller()
        if self.is_active and holder != self.state.broker_id:
            self._resign()
        if holder is None:
            await self._elect()
        else:
            self.active_id = holder

    def _resign(self) -> None:
        """Forget everything; those who wait are told to ask the next controller."""
        assert self._outbox is not None, "the loop runs"
        self._outbox.close()
        self.state = ControllerState(self.state.broker_id, self.state.rules)
        self.active_id = NO_BROKER
        self._term = None
        self._asks.refuse_all()

    # the session with the store

    def _session_changed(self, state: Session) -> None:
        if state is Session.EXPIRED:
            self._queue.clear()  # all of it belongs to a session that is over
            self._asks.refuse_all()
        self.put(state)

    async def _session(self, state: Session) -> None:
        match state:
            case Session.EXPIRED:
                self._resign()
                self._readings.forget_watches()
                await self._store.start()
                await self._registration.register()
                await self._elect()
            case Session.CONNECTED:
                await self._elect()  # whoever holds the office reads everything again
            case Session.SUSPENDED:
                return  # cut off: what is asked meanwhile fails, until we know more

    async def _balance(self, every_s: float) -> None:
        await asyncio.sleep(FIRST_BALANCE_S)
        while True:
            self.put(BalanceDue())
            await asyncio.sleep(every_s)


def _is_of_topic(path: str) -> bool:
    """A topic's node, or the state of one of its partitions."""
    in_topics = path.startswith(f"{paths.TOPICS}/")
    return in_topics and (path.endswith("/state") or paths.parent(path) == paths.TOPICS)
