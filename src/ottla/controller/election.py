"""Who leads now: the four strategies, and nothing else.

Pure functions of a partition's assignment, its ISR and which brokers are alive. The order of
choice is always that of the assignment, never of the ISR: the assignment's first replica is the
one an operator, or the placement, wanted to lead.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ottla.controller.state import Replicas
from ottla.model.ids import BrokerId


class Choice(NamedTuple):
    leader: BrokerId
    isr: Replicas
    unclean: bool = False


def when_offline(
    replicas: Replicas, isr: Replicas, live: Collection[BrokerId], *, unclean_allowed: bool
) -> Choice | None:
    """The leader is gone: the first live in-sync replica, or, if allowed, the first live one."""
    for broker in replicas:
        if broker in live and broker in isr:
            return Choice(broker, tuple(member for member in isr if member in live))
    if unclean_allowed:
        for broker in replicas:
            if broker in live:
                return Choice(broker, (broker,), unclean=True)
    return None


def when_reassigned(target: Replicas, isr: Replicas, live: Collection[BrokerId]) -> Choice | None:
    """The leader is being moved away: the first of the target replicas that is in sync."""
    for broker in target:
        if broker in live and broker in isr:
            return Choice(broker, isr)
    return None


def when_preferred(replicas: Replicas, isr: Replicas, live: Collection[BrokerId]) -> Choice | None:
    """Back to the first replica, if it is able to lead; otherwise the leader stays."""
    preferred = replicas[0]
    if preferred in live and preferred in isr:
        return Choice(preferred, isr)
    return None


def when_leaving(
    replicas: Replicas,
    isr: Replicas,
    live: Collection[BrokerId],
    leaving: Collection[BrokerId],
) -> Choice | None:
    """A broker asks to stop: the first in-sync replica that stays; those leaving quit the ISR."""
    for broker in replicas:
        if broker in live and broker in isr and broker not in leaving:
            return Choice(broker, tuple(member for member in isr if member not in leaving))
    return None
