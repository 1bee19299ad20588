"""Clients by mechanisms: each logs in, writes, reads in a group, and is refused as Apache Kafka
refuses it. `make soak` holds the recorded refusals against a real Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

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
    expected,
    recorded,
)
from tests.interop.security.record import outcomes
from tests.interop.security.site import Site, secure_site
from tests.kdc import need_gssapi
from tools import kafka_cache

pytestmark = [pytest.mark.spec("SEC-01", "SEC-03", "SEC-05"), pytest.mark.timeout(300)]

CELLS = [cell for client in CANNOT if client != SPARK for cell in cells(client)]
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
    """The outcome of a cell; all cells of a client are done at the first question for one."""
    found: dict[str, dict[Cell, Outcome]] = {}

    def outcome(cell: Cell) -> Outcome:
        if cell.client not in found:
            try:
                found[cell.client] = outcomes(cell.client, site)
            except kafka_cache.Missing as missing:
                pytest.skip(str(missing))
        return found[cell.client][cell]

    return outcome


def of_login(cell: Cell) -> bool:
    return cell.fault == LOGIN


@pytest.mark.parametrize("cell", [cell for cell in CELLS if of_login(cell)], ids=str)
def test_a_client_logs_in_produces_and_consumes_in_a_group(done: Done, cell: Cell) -> None:
    assert done(cell) == DONE


@pytest.mark.spec("SEC-04", "SEC-06")
@pytest.mark.parametrize("cell", [cell for cell in CELLS if not of_login(cell)], ids=str)
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


def test_every_mechanism_is_shown_by_some_client_and_every_gap_has_a_reason() -> None:
    for client, reasons in CANNOT.items():
        assert set(reasons) < set(FAULTS), client
        assert all(reasons.values()), client
    for mechanism in FAULTS:
        assert sum(mechanism not in reasons for reasons in CANNOT.values()) >= 5
