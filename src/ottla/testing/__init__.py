"""A broker inside your test process, ready in milliseconds.

    from ottla.testing import Broker

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

- `inprocess`  `Broker`: the same broker that `ottla serve` runs, on a free port and a temporary
  directory, for `with` and `async with`
- `plugin`     the pytest fixture `ottla_broker`
- `history`    what clients did and saw, and the checker that finds broken promises in it
"""

from ottla.testing.inprocess import Broker

__all__ = ["Broker"]
