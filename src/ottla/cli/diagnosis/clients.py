"""What connected clients speak, read from the metrics page of brokers.

Owns: finding the page and reading one family of it. The protocol itself has no question for this.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Final, NamedTuple

FAMILY: Final = "kafka_server_socketservermetrics_client_versions"
TIMEOUT_S: Final = 5.0


class Client(NamedTuple):
    """Client software as one broker sees it: how many connections, which versions of which API."""

    software: str
    version: str
    connections: int
    speaks: tuple[tuple[str, str], ...]


def scraped(address: str) -> list[Client]:
    """The clients of the broker whose metrics are at `host:port`; OSError where there are none."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as page:
        return clients(page.read().decode())


def clients(page: str) -> list[Client]:
    """The clients on a page of Prometheus text."""
    from prometheus_client.parser import text_string_to_metric_families

    rows = (
        (sample.labels, int(sample.value))
        for family in text_string_to_metric_families(page)
        if family.name == FAMILY
        for sample in family.samples
    )
    return _grouped(rows)


def _grouped(rows: Iterable[tuple[dict[str, str], int]]) -> list[Client]:
    found: dict[tuple[str, str], tuple[int, set[tuple[str, str]]]] = {}
    for labels, count in rows:
        key = (labels["client_software_name"], labels["client_software_version"])
        most, speaks = found.get(key, (0, set()))
        speaks.add((labels["request"], labels["version"]))
        # Every connection has asked at least one API, and most ask for versions first.
        found[key] = (max(most, count), speaks)
    return [
        Client(name, version, count, tuple(sorted(speaks)))
        for (name, version), (count, speaks) in sorted(found.items())
    ]
