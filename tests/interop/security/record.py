"""Writes `outcomes.json`: what every client gets from Apache Kafka, cell by cell.

    python -m tests.interop.security.record [ottla|kafka] [client …]

With `ottla` it only prints what is different from the file.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.interop.security import java, kcat, python_clients
from tests.interop.security.cells import CANNOT, OUTCOMES, SPARK, Cell, Outcome, cells, recorded
from tests.interop.security.site import Site, secure_site


def outcomes(client: str, site: Site, some: Iterable[Cell] | None = None) -> dict[Cell, Outcome]:
    """All cells of a client, or some of them, done."""
    jobs = [site.job(cell) for cell in (cells(client) if some is None else some)]
    if client in java.KINDS:
        return java.run(java.KINDS[client], site, jobs)
    if client == "kcat":
        return kcat.run(jobs)
    if client == SPARK:
        from tests.interop.security import spark_connector

        return spark_connector.run_alone(site, jobs)
    return python_clients.run(client, jobs)


def main(args: Sequence[str]) -> int:
    kind, *clients = args or ["kafka"]
    known = recorded() if OUTCOMES.exists() else {}
    found = dict(known)
    with (
        tempfile.TemporaryDirectory() as folder,
        secure_site(Path(folder).resolve(), kind) as site,
    ):
        for client in clients or CANNOT:
            for cell, outcome in outcomes(client, site).items():
                found[cell] = outcome
                if known.get(cell) != outcome:
                    print(f"{cell}: {outcome}; recorded: {known.get(cell)}", flush=True)
    if kind == "kafka":
        OUTCOMES.write_text(text_of(found))
    return 0


def text_of(found: dict[Cell, Outcome]) -> str:
    table: dict[str, dict[str, dict[str, Outcome]]] = {}
    for client in CANNOT:
        for cell in cells(client):
            if cell in found:
                row = table.setdefault(client, {}).setdefault(cell.mechanism, {})
                row[cell.fault] = found[cell]
    return json.dumps(table, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
