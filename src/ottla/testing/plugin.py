"""The pytest fixture `ottla_broker`: a broker for the test session.

    def test_orders_arrive(ottla_broker):
        producer = Producer({"bootstrap.servers": ottla_broker.bootstrap_servers})

One broker serves the whole session, because topics are cheap and a name of its own keeps a test
apart. Override the fixture `ottla_broker_settings` to give it settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing import Broker


@pytest.fixture(scope="session")
def ottla_broker_settings() -> Mapping[str, str]:
    """Broker settings under Kafka's names; override this to change them."""
    return {}


@pytest.fixture(scope="session")
def ottla_broker(ottla_broker_settings: Mapping[str, str]) -> Iterator[Broker]:
    """A running broker; `ottla_broker.bootstrap_servers` says where."""
    from ottla.testing import Broker

    with Broker(ottla_broker_settings) as broker:
        yield broker
