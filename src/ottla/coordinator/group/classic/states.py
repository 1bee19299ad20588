"""The states of a group, and the legal moves between them.

A group that is rebalancing on its first members after being empty waits a little for more of them;
which rebalance that is, the group remembers itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class GroupPhase(Enum):
    """By the names that clients and tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MOVES: Final[Mapping[GroupPhase, frozenset[GroupPhase]]] = {
    GroupPhase.EMPTY: frozenset({GroupPhase.PREPARING, GroupPhase.DEAD}),
    GroupPhase.PREPARING: frozenset({GroupPhase.COMPLETING, GroupPhase.EMPTY, GroupPhase.DEAD}),
    GroupPhase.COMPLETING: frozenset({GroupPhase.STABLE, GroupPhase.PREPARING, GroupPhase.DEAD}),
    GroupPhase.STABLE: frozenset({GroupPhase.PREPARING, GroupPhase.DEAD}),
    GroupPhase.DEAD: frozenset({GroupPhase.DEAD}),
}

CAN_REBALANCE: Final = frozenset(
    phase for phase, moves in MOVES.items() if GroupPhase.PREPARING in moves
)
