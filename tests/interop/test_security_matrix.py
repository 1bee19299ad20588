"""Clients by mechanisms: each logs in, writes, reads in a group, and is refused as Apache Kafka
refuses it. `make test` does every login and every refusal with one client or another; `make soak`
does all cells, and holds the recorded refusals against a real Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.security.cells import (
    CANNOT,
    DONE,
    FAULTS,
    LOGIN,
    SPARK,
    Cell,
    Outcome,
    cells,
    dealt,
    expected,
    recorded,
)
from tests.interop.security.record import outcomes
from tests.interop.security.site import Site, secure_site
from tests.kdc import need_gssapi
from tools import kafka_cache

pytestmark = [pytest.mark.spec("SEC-01", "SEC-03", "SEC-05"), pytest.mark.timeout(300)]

CLIENTS = [client for client in CANNOT if client != SPARK]
CELLS = [cell for client in CLIENTS for cell in cells(client)]
DEALT = dealt(CLIENTS)
Done = Callable[[Cell], Outcome]


@pytest.fixture(scope="module", params=["ottla", pytest.param("kafka", marks=pytest.mark.slow)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def site(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need_gssapi()
    folder: Path = tmp_path_factory.mktemp(f"secure-{kind}")
    with secure_site(folder, kind) as site:
        yield site


@pytest.fixture(scope="module")
def done(site: Site) -> Done:
    """The outcome of a cell; at the first question a client does all that are dealt to it, or all
    others."""
    done: dict[Cell, Outcome] = {}

    def outcome(cell: Cell) -> Outcome:
        if cell not in done:
            batch = [each for each in cells(cell.client) if (each in DEALT) == (cell in DEALT)]
            try:
                done.update(outcomes(cell.client, site, batch))
            except kafka_cache.Missing as missing:
                pytest.skip(str(missing))
        return done[cell]

    return outcome


def of_login(cell: Cell) -> bool:
    return cell.fault == LOGIN


def params(chosen: Callable[[Cell], bool]) -> list[Any]:
    """The cells, of which `make soak` does those that are not dealt."""
    return [
        pytest.param(cell, id=str(cell), marks=() if cell in DEALT else pytest.mark.slow)
        for cell in CELLS
        if chosen(cell)
    ]


@pytest.mark.parametrize("cell", params(of_login))
def test_a_client_logs_in_produces_and_consumes_in_a_group(done: Done, cell: Cell) -> None:
    assert done(cell) == DONE


@pytest.mark.spec("SEC-04", "SEC-06")
@pytest.mark.parametrize("cell", params(lambda cell: not of_login(cell)))
def test_a_client_is_refused_with_the_exception_that_it_gets_from_kafka(
    done: Done, site: Site, kind: str, cell: Cell
) -> None:
    refusal = expected(kind)[cell]
    outcome = done(cell)
    if outcome != refusal:
        # All cells of a client are done at once. Where that keeps a handshake from ending in time,
        # a client reports a lost connection instead of its reason: once more, alone.
        outcome = outcomes(cell.client, site, [cell])[cell]
    assert outcome == refusal


def test_every_cell_is_recorded_and_none_is_let_in_with_a_fault() -> None:
    table = recorded()
    assert set(table) == {cell for client in CANNOT for cell in cells(client)}
    for cell, outcome in table.items():
        assert (outcome == DONE) == of_login(cell), cell
        assert of_login(cell) or "ok" not in outcome, cell


def test_every_client_logs_in_and_every_login_and_refusal_is_dealt_to_some_client() -> None:
    logins = {cell.client for cell in DEALT if of_login(cell)}
    assert logins == set(CLIENTS)
    shown = {(cell.mechanism, cell.fault) for cell in DEALT}
    assert shown == {(cell.mechanism, cell.fault) for cell in CELLS}


def test_every_mechanism_is_shown_by_some_client_and_every_gap_has_a_reason() -> None:
    for client, reasons in CANNOT.items():
        assert set(reasons) < set(FAULTS), client
        assert all(reasons.values()), client
    for mechanism in FAULTS:
        assert sum(mechanism not in reasons for reasons in CANNOT.values()) >= 5
