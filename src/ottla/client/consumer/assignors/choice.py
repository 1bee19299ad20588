"""The value of `partition.assignment.strategy`: names, or custom objects.

The order is the member's preference in the group's vote. A list may mix eager and cooperative
strategies, as it must while a group moves from one to the other; the member then behaves eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ottla.client.consumer.assignors.assignor import (
    Assignor,
    Protocols,
    RangeAssignor,
    RoundRobinAssignor,
)
from ottla.client.consumer.assignors.cooperative_sticky import CooperativeStickyAssignor
from ottla.client.consumer.assignors.sticky import StickyAssignor
from ottla.model.errors import UserError

BUILT_IN: Final[Mapping[str, Callable[[], Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
# The Java client's class names mean the same, so that its settings can be used as they are.
_JAVA: Final = {
    f"org.apache.kafka.clients.consumer.{name}": short
    for short, name in (
        ("range", "RangeAssignor"),
        ("roundrobin", "RoundRobinAssignor"),
        ("sticky", "StickyAssignor"),
        ("cooperative-sticky", "CooperativeStickyAssignor"),
    )
}


def assignors(chosen: Iterable[object]) -> tuple[Assignor, ...]:
    """One object for each strategy, a name or an `Assignor`, in the order given."""
    built = tuple(map(_assignor, chosen))
    if not built:
        raise UserError("partition.assignment.strategy is empty: expected at least one strategy")
    names = [strategy.name for strategy in built]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"partition.assignment.strategy: {name!r} is listed more than once")
    return built


def protocol_of(chosen: Sequence[Assignor]) -> Protocols:
    """Cooperative only if every strategy is."""
    if all(assignor.protocol is Protocols.COOPERATIVE for assignor in chosen):
        return Protocols.COOPERATIVE
    return Protocols.EAGER


def _assignor(strategy: object) -> Assignor:
    if isinstance(strategy, str):
        return _built_in(strategy)
    if isinstance(strategy, type) or not isinstance(strategy, Assignor):
        raise UserError(
            f"partition.assignment.strategy: {strategy!r} is not an Assignor: expected a name, or "
            "an object with name, protocol, user_data, assign and on_assignment"
        )
    return strategy


def _built_in(name: str) -> Assignor:
    short = _JAVA.get(name, name)
    if short not in BUILT_IN:
        expected = ", ".join(BUILT_IN)
        raise UserError(
            f"partition.assignment.strategy={name!r}: expected one of {expected}, or an Assignor"
        )
    return BUILT_IN[short]()
