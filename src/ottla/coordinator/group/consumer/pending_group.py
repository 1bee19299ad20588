"""A group with the records drafted so far applied.

Owns a copy of the group, to which each record is applied as it is drafted; the group itself is
changed when the record is replayed. So every step of a decision sees the changes of the steps
before it, made by the code that loading uses.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordinator.group.consumer.assignors import Assign, AssignmentInput, Subscriber
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import Member
from ottla.coordinator.group.consumer.records import (
    ConsumerGroupChange,
    EpochSet,
    PatternSet,
    ProfileSet,
    Resolved,
    StandingSet,
    TargetEpochSet,
    TargetSet,
    TopicsSet,
    record,
)
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS, sizes
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.settings import GroupSettings
from ottla.metadata.image import Image


class PendingGroup:
    def __init__(self, group: ConsumerGroup, draft: Draft, image: Image) -> None:
        self.before = group
        self.after = group.copy()
        self.draft = draft
        self.image = image

    def write(self, change: ConsumerGroupChange) -> None:
        self.draft.records.append(record(change))
        self.after.apply(change)

    # Members

    def put(self, member: Member) -> None:
        """Write the parts of the member that have changed."""
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
        """A static member has a new member id: it takes over the assignment of the old one."""
        target = self.after.target.get(old.id, NO_PARTS)
        self.remove(old.id)
        self.write(ProfileSet(self.after.id, new.id, new.profile))
        self.write(TargetSet(self.after.id, new.id, target))
        self.write(StandingSet(self.after.id, new.id, new.standing))

    # Patterns

    def resolve(self, resolved: Mapping[str, frozenset[str]]) -> bool:
        """Write the patterns whose topics have changed; whether there are any.

        Patterns without subscribers are removed.
        """
        if not resolved and not self.after.patterns:
            return False
        changed = False
        in_use = self.after.patterns_in_use()
        for pattern, topics in resolved.items():
            current = self.after.patterns.get(pattern)
            if pattern in in_use and (current is None or current.topics != topics):
                version = 0 if current is None else current.version + 1
                changed_pattern = Resolved(topics, version, self.draft.now)
                self.write(PatternSet(self.after.id, pattern, changed_pattern))
                changed = True
        for pattern in sorted(self.after.patterns.keys() - in_use):
            self.write(PatternSet(self.after.id, pattern, None))
        return changed

    # Epochs and targets

    def raise_epoch(self, *, always: bool) -> bool:
        """Raise the group epoch if the subscribed topics changed, or `always`; whether it was."""
        topics = sizes(self.image, self.after.subscribed())
        if topics != self.after.topics:
            self.write(TopicsSet(self.after.id, topics))
        elif not always:
            return False
        self.write(EpochSet(self.after.id, self.after.epoch + 1))
        self.draft.log(
            __name__, "group %r: group epoch raised to %d", self.after.id, self.after.epoch
        )
        return True

    def retarget(self, limits: GroupSettings, assign: Assign) -> None:
        """Write a new target assignment if the target epoch is older than the group epoch."""
        group = self.after
        if group.epoch <= group.target_epoch:
            return
        ids = {name: size.id for name, size in group.topics.items()}
        members = {
            member.id: Subscriber(
                frozenset(ids[name] for name in ids.keys() & group.topics_of(member)),
                group.target.get(member.id, NO_PARTS),
                member.profile.instance_id,
            )
            for member in group.members.values()
        }
        counts = {size.id: size.partitions for size in group.topics.values()}
        assignor = select_assignor(group.preferred_assignor(), limits)
        for member_id, parts in assign(AssignmentInput(assignor, members, counts)).items():
            if group.target.get(member_id) != parts:
                self.write(TargetSet(group.id, member_id, parts))
        self.write(TargetEpochSet(group.id, group.epoch))


def select_assignor(preferred: str | None, limits: GroupSettings) -> str:
    """The preferred assignor if it is supported, else the first supported one."""
    return preferred if preferred in limits.assignors else limits.assignors[0]


def tombstones(group: ConsumerGroup, draft: Draft) -> None:
    """Delete all records of a group; its epoch, whose deletion deletes the group, last."""
    deletions: list[ConsumerGroupChange] = [
        StandingSet(group.id, member_id, None) for member_id in group.members
    ]
    deletions += [TargetSet(group.id, member_id, None) for member_id in group.target]
    deletions += [TargetEpochSet(group.id, None)]
    deletions += [ProfileSet(group.id, member_id, None) for member_id in group.members]
    deletions += [PatternSet(group.id, pattern, None) for pattern in group.patterns]
    deletions += [TopicsSet(group.id, None), EpochSet(group.id, None)]
    draft.records += map(record, deletions)
