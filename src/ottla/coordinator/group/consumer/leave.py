"""Members that leave, for good or for a while, and members that are not heard of.

Pure, of (group, request, now). What a member held is free at once: whoever leaves has given it up,
and whoever was silent for too long must have stopped reading by its own clock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.heartbeat import HeartbeatReply, HeartbeatRequest
from ottla.coordinator.group.consumer.member import LEAVES_FOR_A_WHILE, Member
from ottla.coordinator.group.consumer.pending_group import PendingGroup
from ottla.coordinator.group.consumer.records import StandingSet, record
from ottla.coordinator.group.consumer.timers import forget
from ottla.coordinator.group.consumer.topic_partitions import NO_PARTS
from ottla.coordinator.group.draft import Draft
from ottla.metadata.image import Image

log = logging.getLogger(__name__)


def is_static_leave(group: ConsumerGroup, ask: HeartbeatRequest, draft: Draft) -> HeartbeatReply:
    """Its place is kept until its session ends, for the next to come with its name."""
    member = group.known(ask.member_id, ask.instance_id)
    away = member.standing._replace(epoch=LEAVES_FOR_A_WHILE, revoking=NO_PARTS)
    draft.records.append(record(StandingSet(group.id, member.id, away)))
    return HeartbeatReply(member.id, LEAVES_FOR_A_WHILE)


def remove_member(
    group: ConsumerGroup, members: Iterable[Member], draft: Draft, image: Image, why: str
) -> PendingGroup:
    """The group without these members."""
    revision = PendingGroup(group, draft, image)
    for member in members:
        log.info("group %r: %s %s", group.id, member.id, why)
        revision.remove(member.id)
        forget(group.id, member.id, draft)
    return revision


def rebalance_after_leave(revision: PendingGroup) -> None:
    """What those who have gone leave behind is shared out at the next heartbeat."""
    revision.resolve({})
    revision.raise_epoch(always=True)
