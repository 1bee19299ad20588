"""The controller's task: takes part in elections and, while active, decides and acts.

Owns one queue with one consumer, so decisions never race: store changes, requests and replies are
queued and handled in order. The writes of a step come first, then the new state is installed, then
requests and replies are sent. Never decides: `machine.py` does.

A write that meets another version than expected changes nothing: what the step concerns is read
again and the event decided again. No event is lost: after too many conflicts it is put back into
the queue, or its requester is told to retry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final, Protocol

from ottla.controller.effects import Step
from ottla.controller.event_size import partition_count
from ottla.controller.events import (
    BalanceDue,
    Elected,
    Event,
    RulesChanged,
    UncleanElectionEnabled,
    request_ids,
)
from ottla.controller.machine import on_event
from ottla.controller.runtime import controller_election
from ottla.controller.runtime.broker_requests import requests
from ottla.controller.runtime.controller_election import ControllerTerm
from ottla.controller.runtime.event_queue import EventQueue, Item, Queued
from ottla.controller.runtime.fenced_writer import ControllerFenced, FencedWriter
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.runtime.outbox import BrokerLinks, Outbox
from ottla.controller.runtime.pending_requests import PendingRequests
from ottla.controller.runtime.store_reader import StoreReader
from ottla.controller.state import ControllerState, TopicRules
from ottla.delay.slices import in_slices
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_BROKER, BrokerId
from ottla.shared_state.registration import Registration, RegistrationError
from ottla.store.changes import (
    Change,
    ControllerMoved,
    PreferredElectionNodeChanged,
    ReassignmentNodeChanged,
)
from ottla.store.port import Op, Session, SessionExpired, Store, StoreError, StoreUnavailable

log = logging.getLogger(__name__)

CONFLICTS_MAX: Final = 10
"""After so many the event waits, and others are handled."""
TURN_NS: Final = 2_000_000
"""The loop runs other tasks after events that took so long."""
STORE_RETRY_S: Final = 0.5
FIRST_BALANCE_S: Final = 5.0
DECIDED_AT_ONCE: Final = 100
"""Events that concern more partitions are decided on a thread."""
REQUESTS_AT_ONCE: Final = 4
"""Requests built between two turns of the event loop; each has up to 200 partitions."""


class ReadEvent(Protocol):
    """Reads an event; `again` after a conflict. None if there is nothing to do."""

    def __call__(self, *, again: bool) -> Awaitable[Event | None]: ...


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
        pool: Executor | None = None,
    ) -> None:
        """`pool`: for large decisions; None: the event loop's own."""
        self._store = store
        self._links = links
        self._registration = registration
        self._clock = clock
        self._metrics = metrics
        self._pool = pool
        self._writer = FencedWriter(store)
        self._reader = StoreReader(store, self.put, dice)
        self._pending = PendingRequests()
        self._queue = EventQueue(clock)
        self._outbox: Outbox | None = None
        self._rules = TopicRules()
        self.state = ControllerState(registration.broker_id)
        self._just_started = True
        self.has_ended = False
        """Nothing is decided any more: the broker stops, or has failed."""
        self.active_id: BrokerId = NO_BROKER
        self.first_election_done = asyncio.Event()
        """Set after the first election, won or lost."""

    @property
    def is_active(self) -> bool:
        return self.active_id == self.state.broker_id and self.state.epoch > 0

    def put(self, item: Item) -> None:
        self._queue.put(item)

    async def request(self, make_event: Callable[[int], Event]) -> object:
        """Queue a request to the active controller and wait for the reply."""
        request_id, reply = self.open_request()
        self.put(make_event(request_id))
        try:
            return await reply
        finally:
            self.close_request(request_id)

    def open_request(self) -> tuple[int, asyncio.Future[object]]:
        if not self.is_active or self.has_ended:
            raise KafkaError(ErrorCode.not_controller, "This is not the active controller.")
        return self._pending.open()

    def close_request(self, request_id: int) -> None:
        self._pending.close(request_id)

    def set_rules(self, rules: TopicRules) -> None:
        if rules == self._rules:
            return
        self._rules = rules
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
                turn_ns = self._clock.mono_ns()
                while True:
                    await self._process_next()
                    if self._clock.mono_ns() - turn_ns > TURN_NS:
                        await asyncio.sleep(0)  # events may be handled without waiting for anything
                        turn_ns = self._clock.mono_ns()
        finally:
            self.has_ended = True
            self._pending.fail_all()  # nobody will reply any more, and a stop waits for them

    # the queue

    async def _process_next(self) -> None:
        queued = await self._queue.next()
        self._metrics.observe_queue_time((self._clock.mono_ns() - queued.put_ns) / 1e6)
        with self._metrics.timing(queued.item):
            await self._run_guarded(self._process(queued), queued.item)

    async def _run_guarded(self, work: Coroutine[object, None, None], item: Item) -> None:
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
            retry = item if isinstance(item, Session) else Session.CONNECTED
            if retry not in self._queue:
                self.put(retry)  # it is unknown what was written: read everything again
        except RegistrationError:
            raise
        except Exception:
            log.exception("controller failed to handle %s", type(item).__name__)
            self._pending.fail(request_ids(item), ErrorCode.unknown_server_error)

    async def _process(self, queued: Queued) -> None:
        item = queued.item
        if isinstance(item, Session):
            await self._session(item)
        elif isinstance(item, ControllerMoved):
            await self._controller_moved()
        elif self.is_active:  # all other items are for the active controller
            done = await self._handle(partial(self._read, item), again=queued.failures > 0)
            if not done:
                self._give_up(queued)

    async def _read(self, item: Change | Event, *, again: bool) -> Event | None:
        """The event to decide. An event that met a conflict may be older than what holds now."""
        if isinstance(item, Change):
            return await self._reader.event(item, self.state)
        if isinstance(item, RulesChanged):
            return RulesChanged(self._rules)
        if isinstance(item, UncleanElectionEnabled) and again:
            return await self._reader.unclean_election(item.topic)
        return item

    async def _handle(self, read: ReadEvent, *, again: bool = False) -> bool:
        """Read and decide; after a conflict again. False if there were too many conflicts."""
        try:
            for _ in range(CONFLICTS_MAX):
                event = await read(again=again)
                if event is None:
                    return True
                refused = await self._perform(event)
                if refused is None:
                    return True
                again = True
                if not isinstance(event, Elected):  # which reads everything again
                    for reloaded in await self._reader.reload(refused, self.state):
                        await self._perform(reloaded)  # a conflict here is met again by the event
        except ControllerFenced:
            log.warning(
                "broker %d resigns as controller: a newer controller was elected",
                self.state.broker_id,
            )
            self._resign()
            return True
        return False

    async def _perform(self, event: Event) -> tuple[Op, ...] | None:
        """Decide, write, install, send. Returns the writes of a step that met a conflict."""
        step = await self._decide(event)
        try:
            await self._writer.write(step.writes, step.state.epoch_version)
        except SessionExpired:
            raise
        except StoreError as conflict:
            log.info("conflict in %s, reloading: %s", type(event).__name__, conflict)
            return step.writes
        await self._commit(step)
        return None

    def _give_up(self, queued: Queued) -> None:
        """Too many conflicts: a requester is told to retry, everything else is tried again."""
        name = type(queued.item).__name__
        log.warning("%s met %d conflicts in the metadata store", name, CONFLICTS_MAX)
        if requests_ := request_ids(queued.item):
            self._pending.fail(requests_, ErrorCode.not_controller)  # which clients retry
        else:
            self._queue.put_back(queued)

    async def _decide(self, event: Event) -> Step:
        """Large events are decided on a thread: the decision is pure, and may take long.

        The state does not change meanwhile: only this task replaces it while active.
        """
        if partition_count(self.state, event) <= DECIDED_AT_ONCE:
            return on_event(self.state, event)
        running = asyncio.get_running_loop()
        return await running.run_in_executor(self._pool, on_event, self.state, event)

    async def _commit(self, step: Step) -> None:
        before, self.state = self.state, step.state
        for warning in step.warnings:
            log.warning(warning)
        assert self._outbox is not None, "the loop runs"
        leaving = step.state.shutting_down
        self._outbox.update(step.state.brokers, leaving)
        last = []
        async for request in in_slices(requests(step.state, step.sends), REQUESTS_AT_ONCE):
            if request.broker.id in leaving:
                last.append(request)
            else:
                self._outbox.send((request,))
        self._outbox.send(last)
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

        async def read(*, again: bool) -> Elected:
            return (await self._reader.read_all(term))._replace(restarted=restarted)

        self.state = replace(self.state, rules=self._rules)
        if not await self._handle(read):
            self._give_up(Queued(self._clock.mono_ns(), Session.CONNECTED))
            return
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
        counted = self.state.unclean_elections  # a metric, which must not go back
        self.state = ControllerState(self.state.broker_id, self._rules, unclean_elections=counted)
        self.active_id = NO_BROKER
        self._queue.forget_put_back()
        self._pending.fail_all()

    # the session

    def _session_changed(self, state: Session) -> None:
        if state in (Session.SUSPENDED, Session.EXPIRED):
            self._reader.forget_watches()
        if state is Session.EXPIRED:
            self._queue.clear()  # all items belong to the expired session
            self._pending.fail_all()
        if state is Session.OVERDUE:
            self._queue.put_first(state)
        else:
            self.put(state)

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
