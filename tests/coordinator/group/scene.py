"""Groups without a broker: a shard, a log that is a list, and time that a test moves.

Every record is written, read back and replayed from its bytes, so that what a test sees has been
through the persisted format. `refuse` makes appends fail as an internal topic's would.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from ottla.coordinator.executor import perform
from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.join import JoinRequest
from ottla.coordinator.group.classic.member import GroupPhase, JoinReply, Protocol, SyncReply
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.coordinator.group.offset_commit import CommitRequest, OffsetToCommit
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Outcome, SetTimer
from ottla.metadata.image import Image
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_PRODUCER, ProducerId

GROUP = "g"
START_MS = 1_700_000_000_000
RANGE = Protocol("range", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")


class Scene:
    def __init__(self, log: list[tuple[bytes, bytes | None]] | None = None, **limits: Any) -> None:
        self.limits = replace(GroupSettings(initial_rebalance_delay_ms=0), **limits)
        self.now = WallMs(START_MS)
        self.log = [] if log is None else log
        self.timers: dict[Hashable, int] = {}
        self.refuse: ErrorCode | None = None
        self.held: list[Any] | None = None
        """Where commits are kept while their high watermark does not move."""
        self.numbers = count(1)
        """Of members: no id is ever given twice, whoever coordinates."""
        self.image = Image()
        self.shard = GroupShard(
            lambda: self.limits, lambda: f"id{next(self.numbers)}", lambda: self.image
        )
        for offset, (key, value) in enumerate(self.log):
            change = self.shard.decode(key, value)
            assert change is not None
            self.shard.replay(change, offset, NO_PRODUCER)
        self.execute(self.shard.on_loaded(self.now))

    @property
    def group(self) -> ClassicGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def classic(self) -> ClassicGroup | None:
        return self.group if GROUP in self.shard.groups else None

    def phase(self) -> GroupPhase:
        return self.group.phase

    # What a runtime does

    def execute(self, outcome: Outcome[Any], producer: int = NO_PRODUCER) -> Any:
        perform(outcome.effects)
        for op in outcome.timers:
            self.timers.pop(op.key, None)
            if isinstance(op, SetTimer):
                self.timers[op.key] = self.now + max(1, op.delay_ms)
        code = self.refuse if outcome.records and self.refuse else ErrorCode.none
        if code is ErrorCode.none:
            for record in outcome.records:
                what = self.shard.decode(record.key, record.value)
                assert what == record.change, "it reads as it was written"
                self.shard.replay(record.change, len(self.log), ProducerId(producer))
                self.log.append((record.key, record.value))
        if outcome.then is not None:
            then = outcome.then
            if self.held is not None and outcome.records:
                self.held.append(then)
            else:
                self.execute(then(code, self.now))
        elif code is not ErrorCode.none:
            raise KafkaError(code)
        return outcome.reply

    def commit_held(self) -> None:
        held, self.held = self.held or [], None
        for then in held:
            self.execute(then(ErrorCode.none, self.now))

    def pass_ms(self, ms: int) -> None:
        end = self.now + ms
        while due := [(at, str(key), key) for key, at in self.timers.items() if at <= end]:
            at, _, key = min(due, key=lambda one: one[:2])
            del self.timers[key]
            self.now = WallMs(max(self.now, at))
            self.execute(self.shard.on_timer(key, self.now))
        self.now = WallMs(end)

    def crash(self) -> Scene:
        """Another broker reads what there is of the log."""
        after = Scene(list(self.log))
        after.now, after.numbers = self.now, self.numbers
        return after

    # What clients do

    def start_join(
        self, member_id: str = "", *, group: str = GROUP, client: str = "c", **ask: Any
    ) -> list[JoinReply]:
        """The reply is in the list once it is given."""
        asked = JoinRequest(
            member_id,
            ask.pop("instance", None),
            client,
            "/127.0.0.1",
            ask.pop("session_ms", 10_000),
            ask.pop("rebalance_ms", 60_000),
            ask.pop("type", "consumer"),
            ask.pop("protocols", (RANGE,)),
            needs_known_id=ask.pop("needs_known_id", False),
            can_skip_assignment=ask.pop("can_skip", True),
        )
        assert not ask, ask
        replies: list[JoinReply] = []
        self.execute(self.shard.join(group, asked, replies.append, self.now))
        return replies

    def start_sync(
        self, joined: JoinReply, assignments: dict[str, bytes] | None = None, **ask: Any
    ) -> list[SyncReply]:
        asked = SyncRequest(
            ask.get("member_id", joined.member_id),
            ask.get("instance"),
            ask.get("generation", joined.generation),
            ask.get("type", joined.protocol_type),
            ask.get("protocol", joined.protocol),
            assignments or {},
        )
        replies: list[SyncReply] = []
        self.execute(self.shard.sync(GROUP, asked, replies.append, self.now))
        return replies

    def heartbeat(self, joined: JoinReply, **ask: Any) -> ErrorCode:
        who = MemberIdentity(ask.get("member_id", joined.member_id), ask.get("instance"))
        generation = ask.get("generation", joined.generation)
        try:
            code = self.execute(self.shard.heartbeat(GROUP, who, generation, self.now))
        except KafkaError as refusal:
            return refusal.code
        assert isinstance(code, ErrorCode)
        return code

    def leave(self, *leavers: MemberIdentity) -> list[ErrorCode]:
        codes: list[ErrorCode] = self.execute(self.shard.leave(GROUP, leavers, self.now))
        return codes

    def commit(self, *offsets: OffsetToCommit, **ask: Any) -> list[ErrorCode]:
        asked = CommitRequest(
            ask.pop("group", GROUP),
            ask.pop("member_id", ""),
            ask.pop("instance", None),
            ask.pop("generation", -1),
            offsets,
            **{key: value for key, value in ask.items() if key != "producer"},
        )
        producer = ask.get("producer", NO_PRODUCER)
        codes: list[ErrorCode] = self.execute(self.shard.commit(asked, self.now), producer)
        return codes

    def committed(self, topic: str = "t", partition: int = 0, group: str = GROUP) -> int | None:
        found = self.shard.offsets.get(group, topic, partition)
        return None if found is None else found.offset

    def stable(self, count: int = 1, **ask: Any) -> list[JoinReply]:
        """So many members with an assignment each, in one generation."""
        waiting = [self.start_join(**ask) for _ in range(count)]
        self.pass_ms(1)
        joined = [replies[0] for replies in waiting]
        self.share_out(joined)
        return joined

    def share_out(self, joined: Sequence[JoinReply]) -> None:
        """Everybody syncs, the leader last; each gets its own id as its assignment."""
        given = {one.member_id: one.member_id.encode() for one in joined}
        leaders = [one for one in joined if one.member_id == one.leader]
        others = [one for one in joined if one.member_id != one.leader]
        waiting = [self.start_sync(one) for one in others]
        waiting += [self.start_sync(one, given) for one in leaders]
        assert all(replies[0].error is ErrorCode.none for replies in waiting), waiting


def offset(value: int, topic: str = "t", partition: int = 0, metadata: str = "") -> OffsetToCommit:
    return OffsetToCommit(topic, partition, value, -1, metadata)


def code_of(call: Any, *arguments: Any, **named: Any) -> ErrorCode:
    """What a call is refused with; none when it is not."""
    try:
        call(*arguments, **named)
    except KafkaError as refusal:
        return refusal.code
    return ErrorCode.none
