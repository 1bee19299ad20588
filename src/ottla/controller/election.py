"""Leader election: the four strategies.

Pure functions of a partition's assignment, its ISR and the live brokers. Candidates are tried in
the order of the assignment, never of the ISR: the first replica of the assignment is the preferred
leader.
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
    """The leader is offline: the first live in-sync replica or, if allowed, the first live one."""
    for broker in replicas:
        if broker in live and broker in isr:
            return Choice(broker, tuple(member for member in isr if member in live))
    if unclean_allowed:
        for broker in replicas:
            if broker in live:
                return Choice(broker, (broker,), unclean=True)
    return None


def when_reassigned(target: Replicas, isr: Replicas, live: Collection[BrokerId]) -> Choice | None:
    """The leader is being reassigned: the first target replica that is in sync."""
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


def when_shutting_down(
    replicas: Replicas,
    isr: Replicas,
    live: Collection[BrokerId],
    shutting_down: Collection[BrokerId],
) -> Choice | None:
    """Controlled shutdown: the first in-sync replica that stays; the ISR loses those that leave."""
    for broker in replicas:
        if broker in live and broker in isr and broker not in shutting_down:
            return Choice(broker, tuple(member for member in isr if member not in shutting_down))
    return None
