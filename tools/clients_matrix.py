"""Writes `docs/clients-matrix.md`, which client shows what, from the interop tests' own names, and
`docs/security-matrix.md`, which client logs in how, from the cells of `tests/interop/security`.

Owns: these documents. Never: says a thing that no test shows; a cell is a test, or the reason why
that client has none.

    python -m tools.clients_matrix [--check]
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.interop.conftest import CLIENTS
from tests.interop.security.cells import CANNOT, DIFFERENT, FAULTS, Cell, Outcome, recorded

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = ROOT / "docs" / "clients-matrix.md"
SECURITY_DOCUMENT: Final = ROOT / "docs" / "security-matrix.md"
INTEROP: Final = ROOT / "tests" / "interop"

HEAD: Final = """# Clients and what they show

Written by `python -m tools.clients_matrix` from the tests in `tests/interop/`; `make interop` runs
them. Each cell is a test that the client passes against Ottla, and against Apache Kafka when
`OTTLA_INTEROP_TARGET=kafka` puts it in Ottla's place. Versions: `requirements.lock` for the Python
clients, `tools/kafka_cache.py` for Java.

## Client libraries
"""
ADMIN_HEAD: Final = """
## The Java admin, 3.9 and 4.x
"""
SHELL_HEAD: Final = """
## Kafka's command-line tools, 4.x
"""
SECURITY_HEAD: Final = """# Clients and logins

Written by `python -m tools.clients_matrix` from the cells of `tests/interop/security`. Each cell
is a test. `make interop` does every login and every refusal with one client or another, and a login
with every client; `make spark` those of Spark's connector; `make soak` all of them, against Ottla
and against Apache Kafka 4.x. The exceptions are those that clients get from both; the differences
are at the end. How to set these up: [security.md](security.md).

## Logs in, writes, reads in a group
"""
REFUSED_HEAD: Final = """
## Refused with

The exception or error code that a producer gets and, where it is another one, that a consumer
gets. Certificates are the broker's for TLS, the client's for mTLS. A wrong key or an unknown
principal of Kerberos is refused by the KDC, before a client reaches the broker. Spark's connector
joins no group: its missing rule is that of the topic.
"""
DIFFERENT_HEAD: Final = """## Where Ottla differs
"""


def main(args: Sequence[str]) -> int:
    stale = 0
    for path, write in DOCUMENTS.items():
        text = write()
        if "--check" not in args:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            print(f"{path.relative_to(ROOT)}: run python -m tools.clients_matrix", file=sys.stderr)
            stale = 1
    return stale


def document() -> str:
    lines = [HEAD, *client_table(tests_of("test_every_client.py")), ADMIN_HEAD]
    lines += [f"- {promise(name)}" for name in tests_of("test_java_admin.py")]
    lines += [SHELL_HEAD, *(f"- {promise(name)}" for name in tests_of("test_kafka_tools.py"))]
    return "\n".join(lines) + "\n"


def security_document() -> str:
    lines = [SECURITY_HEAD, *login_table(), REFUSED_HEAD]
    table = recorded()
    for mechanism in FAULTS:
        lines += [f"### {mechanism}", "", *refusal_table(mechanism, table), ""]
    lines += [DIFFERENT_HEAD]
    lines += [
        f"- {cell}: {refusal(each.outcome)} instead. {each.reason}."
        for cell, each in DIFFERENT.items()
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def login_table() -> Iterator[str]:
    """A row for each mechanism, a column for each client; a number leads to the reason below."""
    reasons: list[str] = []
    yield "| | " + " | ".join(CANNOT) + " |"
    yield "|---|" + "---|" * len(CANNOT)
    for mechanism in FAULTS:
        cells = []
        for lacking in CANNOT.values():
            reason = lacking.get(mechanism)
            if reason is not None and reason not in reasons:
                reasons.append(reason)
            cells.append("yes" if reason is None else f"no ({reasons.index(reason) + 1})")
        yield f"| {mechanism} | " + " | ".join(cells) + " |"
    yield ""
    yield from (f"{number}. {reason}" for number, reason in enumerate(reasons, 1))


def refusal_table(mechanism: str, table: Mapping[Cell, Outcome]) -> Iterator[str]:
    """A row for each client, a column for each fault."""
    faults = FAULTS[mechanism]
    yield "| | " + " | ".join(faults) + " |"
    yield "|---|" + "---|" * len(faults)
    for client, lacking in CANNOT.items():
        if mechanism not in lacking:
            outcomes = (table[Cell(client, mechanism, fault)] for fault in faults)
            yield f"| {client} | " + " | ".join(map(refusal, outcomes)) + " |"


def refusal(outcome: Outcome) -> str:
    return ", ".join(f"`{text}`" for text in dict.fromkeys(outcome))


def client_table(tests: Sequence[str]) -> Iterator[str]:
    """A row for each test, a column for each client; a number leads to the reason below."""
    reasons: list[str] = []
    yield "| | " + " | ".join(CLIENTS) + " |"
    yield "|---|" + "---|" * len(CLIENTS)
    for name in tests:
        cells = []
        for client in CLIENTS.values():
            reason = client.cannot.get(name)
            if reason is not None and reason not in reasons:
                reasons.append(reason)
            cells.append("yes" if reason is None else f"no ({reasons.index(reason) + 1})")
        yield f"| {promise(name)} | " + " | ".join(cells) + " |"
    yield ""
    yield from (f"{number}. {reason}" for number, reason in enumerate(reasons, 1))


def tests_of(file: str) -> list[str]:
    tree = ast.parse((INTEROP / file).read_text())
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return [node.name for node in functions if node.name.startswith("test_")]


def promise(name: str) -> str:
    """`test_topics_are_deleted` as a reader says it."""
    return name.removeprefix("test_").replace("_", " ")


DOCUMENTS: Final[Mapping[Path, Callable[[], str]]] = {
    DOCUMENT: document,
    SECURITY_DOCUMENT: security_document,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
