"""The states of a group, and the legal moves between them.

A group that is rebalancing on its first members after being empty waits a little for more of them;
which rebalance that is, the group remembers itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Phase(Enum):
    """By the names that clients and tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MOVES: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.EMPTY: frozenset({Phase.PREPARING, Phase.DEAD}),
    Phase.PREPARING: frozenset({Phase.COMPLETING, Phase.EMPTY, Phase.DEAD}),
    Phase.COMPLETING: frozenset({Phase.STABLE, Phase.PREPARING, Phase.DEAD}),
    Phase.STABLE: frozenset({Phase.PREPARING, Phase.DEAD}),
    Phase.DEAD: frozenset({Phase.DEAD}),
}

CAN_REBALANCE: Final = frozenset(
    phase for phase, moves in MOVES.items() if Phase.PREPARING in moves
)
