"""The tables of clients in the documents are those the tests show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import CLIENTS
from tools import clients_matrix


@pytest.mark.parametrize("path", clients_matrix.DOCUMENTS, ids=lambda path: path.name)
def test_the_document_is_what_the_tests_say(path: Path) -> None:
    assert path.read_text() == clients_matrix.DOCUMENTS[path]()


def test_every_test_that_a_client_sits_out_exists() -> None:
    tests = clients_matrix.tests_of("test_every_client.py")
    for client in CLIENTS.values():
        assert set(client.cannot) <= set(tests), client.name
