"""A group as it will be once what a decision has drafted stands in the log.

Owns a copy of the group, to which each record is applied as it is drafted; the group itself is
changed when the record is replayed. So every step of a decision sees what the steps before it
have done, by the code that loading uses.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ottla.coordinator.group.consumer.assignors import ASSIGNORS, Subscriber
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import Member
from ottla.coordinator.group.consumer.records import (
    EpochSet,
    PatternSet,
    ProfileSet,
    Resolved,
    StandingSet,
    TargetEpochSet,
    TargetSet,
    TopicsSet,
    What,
    record,
)
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, sizes
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.settings import GroupSettings
from ottla.metadata.image import Image

log = logging.getLogger(__name__)


class PendingGroup:
    def __init__(self, group: ConsumerGroup, draft: Draft, image: Image) -> None:
        self.before = group
        self.after = group.copy()
        self.draft = draft
        self.image = image

    def write(self, what: What) -> None:
        self.draft.records.append(record(what))
        self.after.apply(what)

    # Members

    def put(self, member: Member) -> None:
        """What differs from the member as it is."""
        now = self.after.members.get(member.id)
        if now is None or now.profile != member.profile:
            self.write(ProfileSet(self.after.id, member.id, member.profile))
        if now is None or now.standing != member.standing:
            self.write(StandingSet(self.after.id, member.id, member.standing))

    def remove(self, member_id: str) -> None:
        self.write(StandingSet(self.after.id, member_id, None))
        self.write(TargetSet(self.after.id, member_id, None))
        self.write(ProfileSet(self.after.id, member_id, None))

    def rename(self, old: Member, new: Member) -> None:
        """A static member is back under another id: it goes on where the old one was."""
        target = self.after.target.get(old.id, NO_PARTS)
        self.remove(old.id)
        self.write(ProfileSet(self.after.id, new.id, new.profile))
        self.write(TargetSet(self.after.id, new.id, target))
        self.write(StandingSet(self.after.id, new.id, new.standing))

    # Patterns

    def resolve(self, found: Mapping[str, frozenset[str]]) -> bool:
        """Write down patterns that stand for other topics now; whether there are any.

        Those that nobody subscribes with any more are taken away.
        """
        if not found and not self.after.patterns:
            return False
        changed = False
        in_use = self.after.patterns_in_use()
        for pattern, topics in found.items():
            known = self.after.patterns.get(pattern)
            if pattern in in_use and (known is None or known.topics != topics):
                version = 0 if known is None else known.version + 1
                resolved = Resolved(topics, version, self.draft.now)
                self.write(PatternSet(self.after.id, pattern, resolved))
                changed = True
        for pattern in sorted(self.after.patterns.keys() - in_use):
            self.write(PatternSet(self.after.id, pattern, None))
        return changed

    # Epochs and targets

    def raise_epoch(self, *, always: bool) -> bool:
        """If subscriptions or topics have changed, or in any case; whether it was."""
        topics = sizes(self.image, self.after.subscribed())
        if topics != self.after.topics:
            self.write(TopicsSet(self.after.id, topics))
        elif not always:
            return False
        self.write(EpochSet(self.after.id, self.after.epoch + 1))
        log.info("group %r: epoch %d", self.after.id, self.after.epoch)
        return True

    def retarget(self, limits: GroupSettings) -> None:
        """Share out anew, if the target is of an older epoch than the group."""
        group = self.after
        if group.epoch <= group.target_epoch:
            return
        ids = {name: size.id for name, size in group.topics.items()}
        members = {
            member.id: Subscriber(
                frozenset(ids[name] for name in group.topics_of(member) if name in ids),
                group.target.get(member.id, NO_PARTS),
                member.profile.instance_id,
            )
            for member in group.members.values()
        }
        assign = ASSIGNORS[chosen(group.preferred_assignor(), limits)]
        counts = {size.id: size.partitions for size in group.topics.values()}
        for member_id, parts in assign(members, counts).items():
            if group.target.get(member_id) != parts:
                self.write(TargetSet(group.id, member_id, parts))
        self.write(TargetEpochSet(group.id, group.epoch))


def chosen(preferred: str | None, limits: GroupSettings) -> str:
    """What members ask for, as long as it is offered; else the first that is."""
    return preferred if preferred in limits.assignors else limits.assignors[0]


def tombstones(group: ConsumerGroup, draft: Draft) -> None:
    """Take away everything that is written of a group; its epoch, which is the group, last."""
    gone: list[What] = [StandingSet(group.id, member_id, None) for member_id in group.members]
    gone += [TargetSet(group.id, member_id, None) for member_id in group.target]
    gone += [TargetEpochSet(group.id, None)]
    gone += [ProfileSet(group.id, member_id, None) for member_id in group.members]
    gone += [PatternSet(group.id, pattern, None) for pattern in group.patterns]
    gone += [TopicsSet(group.id, None), EpochSet(group.id, None)]
    draft.records += map(record, gone)
