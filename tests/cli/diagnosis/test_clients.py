from __future__ import annotations

import pytest

from ottla.cli.diagnosis.facts import FAMILY, Client, clients, scrape_clients
from tools.nodes import free_ports


def page(*rows: tuple[str, str, str, int, int]) -> str:
    lines = [f"# TYPE {FAMILY} gauge\n"]
    for name, version, api, spoken, count in rows:
        labels = f'client_software_name="{name}",client_software_version="{version}"'
        lines.append(f'{FAMILY}{{{labels},request="{api}",version="{spoken}"}} {count}\n')
    return "".join(lines) + "# TYPE other gauge\nother 1\n"


def test_rows_of_one_software_come_together() -> None:
    found = clients(
        page(
            ("librdkafka", "2.8", "Produce", 10, 2),
            ("librdkafka", "2.8", "ApiVersions", 3, 3),
            ("java", "4.0", "Fetch", 17, 1),
        )
    )
    assert found == [
        Client("java", "4.0", 1, (("Fetch", "17"),)),
        Client("librdkafka", "2.8", 3, (("ApiVersions", "3"), ("Produce", "10"))),
    ]


def test_a_page_without_them_has_none() -> None:
    assert clients("# TYPE other gauge\nother 1\n") == []


def test_a_page_that_is_not_there_is_an_error_of_the_system() -> None:
    [port] = free_ports(1)
    with pytest.raises(OSError, match="refused"):
        scrape_clients(f"127.0.0.1:{port}")
