"""Writes `docs/clients-matrix.md`: which client shows what, from the interop tests' own names.

Owns: that document. Never: says a thing that no test shows; a cell is a test, or the reason why
that client has none.

    python -m tools.clients_matrix [--check]
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.interop.conftest import CLIENTS

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = ROOT / "docs" / "clients-matrix.md"
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


def main(args: Sequence[str]) -> int:
    text = document()
    if "--check" not in args:
        DOCUMENT.write_text(text)
    elif not DOCUMENT.is_file() or DOCUMENT.read_text() != text:
        print(f"{DOCUMENT.relative_to(ROOT)}: run python -m tools.clients_matrix", file=sys.stderr)
        return 1
    return 0


def document() -> str:
    lines = [HEAD, *client_table(tests_of("test_every_client.py")), ADMIN_HEAD]
    lines += [f"- {promise(name)}" for name in tests_of("test_java_admin.py")]
    lines += [SHELL_HEAD, *(f"- {promise(name)}" for name in tests_of("test_kafka_tools.py"))]
    return "\n".join(lines) + "\n"


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
