"""A broker inside your test process, ready in milliseconds.

    from ottla.testing import Broker

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

- `inprocess`  `Broker`: the same broker that `ottla serve` runs, on a free port and a temporary
  directory, for `with` and `async with`
- `plugin`     the pytest fixture `ottla_broker`, which an installed Ottla offers to every test
- `history`    what clients did and saw, and the checker that finds broken promises in it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.inprocess import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> type[Broker]:
    """pytest imports this package for everybody; only who wants a broker shall pay for one."""
    if name != "Broker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ottla.testing.inprocess import Broker

    return Broker
