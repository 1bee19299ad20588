"""The metrics page says when the certificate of each listener expires."""

from __future__ import annotations

import re
import time
from urllib.request import urlopen

import pytest

from ottla.testing import Broker
from tests.fakes.certificates import certificates, pem

DAY_S = 86_400


@pytest.mark.spec("SEC-01", "MON-01")
def test_the_expiry_of_each_listeners_certificate_is_a_metric() -> None:
    made = certificates()
    settings = {
        **pem(made.broker),
        "listeners": "TLS://localhost:0,OLD://localhost:0,PLAINTEXT://localhost:0",
        "listener.security.protocol.map": "TLS:SSL,OLD:SSL,PLAINTEXT:PLAINTEXT",
        **{f"listener.name.old.{name}": text for name, text in pem(made.expired).items()},
        "metrics.port": "0",
    }
    with (
        Broker(settings) as broker,
        urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics") as page,
    ):
        lines = page.read().decode()
    name = "kafka_server_socketservermetrics_certificate_expiry_seconds"
    found = dict(re.findall(rf'^{name}{{.*listener="(\w+)".*}} (\S+)$', lines, re.MULTILINE))
    assert set(found) == {"TLS", "OLD"}
    left_s = {listener: float(text) - time.time() for listener, text in found.items()}
    assert left_s["TLS"] == pytest.approx(365 * DAY_S, abs=DAY_S)
    assert left_s["OLD"] == pytest.approx(-DAY_S, abs=DAY_S / 2)
