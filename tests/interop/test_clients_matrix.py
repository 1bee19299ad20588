"""The table of clients in the documents is the one the tests show."""

from __future__ import annotations

from tests.interop.conftest import CLIENTS
from tools import clients_matrix


def test_the_document_is_what_the_tests_say() -> None:
    assert clients_matrix.DOCUMENT.read_text() == clients_matrix.document()


def test_every_test_that_a_client_sits_out_exists() -> None:
    tests = clients_matrix.tests_of("test_every_client.py")
    for client in CLIENTS.values():
        assert set(client.cannot) <= set(tests), client.name
