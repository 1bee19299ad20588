"""The controller's task: takes part in elections and, while active, decides and acts.

Owns one queue with one consumer, so decisions never race: store changes, requests and replies are
queued and handled in order. The writes of a step come first, then the new state is installed, then
requests and replies are sent. Never decides: `machine.py` does.

The queue needs no bound of its own: a watch fires once, a broker has one request in flight, and
requests wait for their replies.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias

from ottla.controller.effects import Step
from ottla.controller.event_size import partition_count
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
"""Events that concern more partitions are decided on a thread."""
REQUESTS_AT_ONCE: Final = 4
"""Requests built between two turns of the event loop; each has up to 200 partitions."""

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
        metrics: ControllerMetrics,
    ) -> None:
        self._store = store
        self._links = links
        self._registration = registration
        self._clock = clock
        self._metrics = metrics
        self._writer = FencedWriter(store)
        self._reader = StoreReader(store, self.put, dice)
        self._pending = PendingRequests()
        self._queue: deque[tuple[int, Item]] = deque()
        self._arrived = asyncio.Event()
        self._outbox: Outbox | None = None
        self.state = ControllerState(registration.broker_id)
        self._just_started = True
        self._has_ended = False
        self.active_id: BrokerId = NO_BROKER
        self.first_election_done = asyncio.Event()
        """Set after the first election, won or lost."""

    @property
    def is_active(self) -> bool:
        return self.active_id == self.state.broker_id and self.state.epoch > 0

    def put(self, item: Item) -> None:
        self._queue.append((self._clock.mono_ns(), item))
        self._arrived.set()

    async def request(self, make_event: Callable[[int], Event]) -> object:
        """Queue a request to the active controller and wait for the reply."""
        request_id, reply = self.open_request()
        self.put(make_event(request_id))
        try:
            return await reply
        finally:
            self.close_request(request_id)

    def open_request(self) -> tuple[int, asyncio.Future[object]]:
        if not self.is_active or self._has_ended:
            raise KafkaError(ErrorCode.not_controller, "This is not the active controller.")
        return self._pending.open()

    def close_request(self, request_id: int) -> None:
        self._pending.close(request_id)

    def set_rules(self, rules: TopicRules) -> None:
        if self.is_active:
            self.put(RulesChanged(rules))
        else:
            self.state = replace(self.state, rules=rules)

    async def run(self, balance_every_s: float | None) -> None:
        """Run until cancelled. The broker must be registered before."""
        self._store.on_session(self._session_changed)
        self._metrics.register_gauges(lambda: self.state, lambda: len(self._queue))
        try:
            async with asyncio.TaskGroup() as tasks:
                self._outbox = Outbox(self._links, self.put, tasks, self._metrics)
                if balance_every_s is not None:
                    tasks.create_task(self._balance(balance_every_s))
                await self._run_guarded(self._elect(), Session.CONNECTED)
                self.first_election_done.set()
                while True:
                    await self._process_next()
        finally:
            self._has_ended = True
            self._pending.fail_all()  # nobody will reply any more, and a stop waits for them

    # the queue

    async def _process_next(self) -> None:
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        put_ns, item = self._queue.popleft()
        self._metrics.observe_queue_time((self._clock.mono_ns() - put_ns) / 1e6)
        retry = item if isinstance(item, Session) else Session.CONNECTED
        with self._metrics.timing(item):
            await self._run_guarded(self._process(item), retry)

    async def _run_guarded(self, work: Coroutine[Any, Any, None], retry: Session) -> None:
        """An error of one event does not stop the loop. If the store is unavailable, start over."""
        try:
            await work
        except SessionExpired:
            log.warning(
                "metadata store session of broker %d expired; registering again",
                self.state.broker_id,
            )
        except StoreUnavailable as error:
            log.warning("metadata store unavailable, controller retries: %s", error)
            self._pending.fail_all()  # clients retry; the events of these may be lost
            await asyncio.sleep(STORE_RETRY_S)
            if all(item is not retry for _, item in self._queue):
                self.put(retry)  # it is unknown what was written: read everything again
        except RegistrationError:
            raise
        except Exception:
            log.exception("controller failed to handle an event")

    async def _process(self, item: Item) -> None:
        if isinstance(item, Session):
            await self._session(item)
        elif isinstance(item, ControllerMoved):
            await self._controller_moved()
        elif self.is_active:  # all other items are for the active controller
            event = await self._reader.event(item, self.state) if isinstance(item, Change) else item
            if event is not None:
                await self._handle(event)

    async def _handle(self, event: Event) -> None:
        """Decide, write, install, send. After a version conflict: reload and decide again."""
        for _ in range(CONFLICTS_MAX):
            step = await self._decide(event)
            try:
                await self._writer.write(step.writes, step.state.epoch_version)
            except ControllerFenced:
                log.warning(
                    "broker %d resigns as controller: a newer controller was elected",
                    self.state.broker_id,
                )
                self._resign()
                return
            except SessionExpired:
                raise
            except StoreError as conflict:
                log.info("conflict in %s, reloading: %s", type(event).__name__, conflict)
                await self._reload(step.writes)
                continue
            await self._commit(step)
            return
        raise RuntimeError(f"gave up after {CONFLICTS_MAX} conflicts: {event}")

    async def _decide(self, event: Event) -> Step:
        """Large events are decided on a thread: the decision is pure, and may take long.

        The state does not change meanwhile: only this task replaces it while active.
        """
        if partition_count(self.state, event) <= DECIDED_AT_ONCE:
            return on_event(self.state, event)
        running = asyncio.get_running_loop()
        return await running.run_in_executor(None, on_event, self.state, event)

    async def _commit(self, step: Step) -> None:
        before, self.state = self.state, step.state
        for warning in step.warnings:
            log.warning(warning)
        assert self._outbox is not None, "the loop runs"
        self._outbox.update(step.state.brokers)
        async for request in in_slices(requests(step.state, step.sends), REQUESTS_AT_ONCE):
            self._outbox.send((request,))
        for reply in step.replies:
            give = partial(self._pending.reply, reply.request_id, reply.answer)
            if reply.at_once or not step.sends:
                give()
            else:
                self._outbox.after_delivery(give)
        if step.state.topics is not before.topics:
            new = step.state.topics.keys() - before.topics.keys()
            versions = {name: step.state.topics[name].version for name in new}
            await self._reader.watch_topics(versions)

    async def _reload(self, writes: tuple[Op, ...]) -> None:
        """Reload everything that the failed step wanted to write."""
        await self._handle(await self._reader.topics(self.state.topics))
        changes = {change_of_data(op.path) for op in writes if _is_of_topic(op.path)}
        for change in changes:
            if isinstance(change, PartitionsChanged) and change.topic in self.state.topics:
                reloaded = await self._reader.partitions(change.topic)
                if reloaded is not None:
                    await self._handle(reloaded)
        states = [TopicPartition(*change) for change in changes if isinstance(change, StateChanged)]
        await self._handle(await self._reader.states(sorted(states)))

    # election

    async def _elect(self) -> None:
        """Become the controller if there is none."""
        controller = await self._reader.controller()
        restarted, self._just_started = self._just_started and controller is None, False
        term = None
        if controller in (None, self.state.broker_id):  # ours if the reply to our write was lost
            term = await controller_election.try_to_become_controller(
                self._store, self.state.broker_id, self._clock.wall_ms()
            )
            controller = await self._reader.controller()
        if term is not None and controller == self.state.broker_id:
            await self._become_active(term, restarted=restarted)
            return
        if self.state.epoch > 0:
            self._resign()
        self.active_id = NO_BROKER if controller is None else controller

    async def _become_active(self, term: ControllerTerm, *, restarted: bool) -> None:
        """With a term that this broker has already, read everything again."""
        if term.epoch != self.state.epoch:
            log.info("broker %d elected as controller, epoch %d", self.state.broker_id, term.epoch)
        elected = await self._reader.read_all(term)
        await self._handle(elected._replace(restarted=restarted))
        if self.state.epoch != term.epoch:
            return  # a newer controller was elected meanwhile; its node is watched
        self.active_id = self.state.broker_id
        for change in (PreferredElectionNodeChanged(), ReassignmentNodeChanged()):
            self.put(change)  # requests to an earlier controller

    async def _controller_moved(self) -> None:
        """The controller node was deleted: run for election. Changed: follow the new controller."""
        controller = await self._reader.controller()
        if self.is_active and controller != self.state.broker_id:
            self._resign()
        if controller is None:
            await self._elect()
        else:
            self.active_id = controller

    def _resign(self) -> None:
        """Drop all state; pending requests fail with NOT_CONTROLLER."""
        assert self._outbox is not None, "the loop runs"
        self._outbox.close()
        self.state = ControllerState(self.state.broker_id, self.state.rules)
        self.active_id = NO_BROKER
        self._pending.fail_all()

    # the session

    def _session_changed(self, state: Session) -> None:
        if state in (Session.SUSPENDED, Session.EXPIRED):
            self._reader.forget_watches()
        if state is Session.EXPIRED:
            self._queue.clear()  # all items belong to the expired session
            self._pending.fail_all()
        self.put(state)
        if state is Session.OVERDUE:
            self._queue.rotate(1)  # before items that would wait for the store

    async def _session(self, state: Session) -> None:
        match state:
            case Session.EXPIRED:
                self._resign()
                await self._store.start()
                await self._registration.register()
                await self._elect()
            case Session.CONNECTED:
                await self._elect()  # an active controller reads everything again
            case Session.SUSPENDED:
                return  # store calls fail until the state changes
            case Session.OVERDUE:
                if self.state.epoch == 0:
                    return
                log.warning(
                    "broker %d resigns as controller: no contact with the metadata store for as "
                    "long as its session lasts",
                    self.state.broker_id,
                )
                self._resign()

    async def _balance(self, every_s: float) -> None:
        await asyncio.sleep(FIRST_BALANCE_S)
        while True:
            self.put(BalanceDue())
            await asyncio.sleep(every_s)


def _is_of_topic(path: str) -> bool:
    """A topic's node, or the state of one of its partitions."""
    in_topics = path.startswith(f"{paths.TOPICS}/")
    return in_topics and (path.endswith("/state") or paths.parent(path) == paths.TOPICS)
