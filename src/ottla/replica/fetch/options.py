"""The options of a fetch request: who reads, from where, up to which offset, for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.log.log import Log
from ottla.model.ids import BrokerEpoch, BrokerId, Offset
from ottla.replica.leader import UNKNOWN_EPOCH

CONSUMER: Final = BrokerId(-1)


class Isolation(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


READ_COMMITTED: Final = Isolation.READ_COMMITTED
ISOLATIONS: Final = (Isolation.READ_UNCOMMITTED, READ_COMMITTED)
"""By their number in a request."""
_END: Final[Callable[[Log], Offset]] = attrgetter("end_offset")
_STABLE: Final[Callable[[Log], Offset]] = attrgetter("last_stable_offset")
_COMMITTED: Final[Callable[[Log], Offset]] = attrgetter("high_watermark")


class FetchClient(NamedTuple):
    """Where a consumer is."""

    rack: str
    listener: str
    """Of this broker, to which it is connected: a replica it is sent to must have it too."""


@dataclass(slots=True)
class FetchOptions:
    """The options of one fetch request."""

    replica_id: BrokerId
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: Isolation
    replica_epoch: BrokerEpoch = UNKNOWN_EPOCH
    """The broker epoch of the follower."""
    client: FetchClient | None = None
    """A consumer that can read from followers, where the broker allows it."""
    from_follower: bool = field(init=False)
    upper_bound: Callable[[Log], Offset] = field(init=False)
    """Returns the first offset of a log that this reader may not see."""

    def __post_init__(self) -> None:
        self.from_follower = self.replica_id >= 0
        if self.from_follower:
            self.upper_bound = _END
        else:
            self.upper_bound = _STABLE if self.isolation is READ_COMMITTED else _COMMITTED
