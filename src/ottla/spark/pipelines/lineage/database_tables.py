"""The tables that a query of a database reads, by its words.

Owns: how their names are found after FROM and JOIN, past comments, texts, subqueries and the names
of WITH. Pure. Never: parses the rest of the SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

NOT_CODE: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
TOKEN: Final = re.compile(r'"(?:[^"]|"")*"|\w+|\S')
OF_FUNCTIONS: Final = frozenset(("extract", "substring", "trim", "overlay"))
"""Their arguments may have a FROM."""
NO_ALIAS: Final = frozenset(
    (
        *("where", "join", "left", "right", "full", "inner", "cross", "natural", "on", "using"),
        *("group", "order", "having", "limit", "offset", "fetch", "for", "window"),
        *("union", "except", "intersect"),
    )
)
"""Words that may follow a table and name nothing."""


class Table(NamedTuple):
    """A table, and the names in front of its own: none, a schema, or a database and a schema."""

    outer: tuple[str, ...]
    name: str

    def name_within(self, outer: tuple[str, ...]) -> str:
        """Its whole name; `outer` are the names that are left out by default."""
        missing = outer[: max(len(outer) - len(self.outer), 0)]
        return ".".join((*missing, *self.outer, self.name))


def tables_read(query: str) -> list[Table]:
    """Each table once, in the order of the query."""
    tokens = TOKEN.findall(NOT_CODE.sub(" ", query))
    found: dict[Table, None] = {}
    named: set[str] = set()
    for at, token in enumerate(tokens):
        match token.lower():
            case "as" if at and tokens[at + 1 : at + 2] == ["("]:
                named.add(_plain(tokens[at - 1]))
            case "from" | "join" if not _is_of_function(tokens, at):
                found.update(dict.fromkeys(_tables_at(tokens, at + 1)))
    return [table for table in found if table.outer or table.name not in named]


def _tables_at(tokens: list[str], at: int) -> Iterator[Table]:
    """The tables of a list: `a, b.c AS x, (SELECT …), d`."""
    while at < len(tokens):
        if tokens[at].lower() in ("lateral", "only"):
            at += 1
            continue
        names, at = _name_at(tokens, at)
        if names and tokens[at : at + 1] != ["("]:
            yield Table(tuple(names[:-1]), names[-1])
        at = _after_item(tokens, at)
        if tokens[at : at + 1] != [","]:
            return
        at += 1


def _name_at(tokens: list[str], at: int) -> tuple[list[str], int]:
    names: list[str] = []
    while at < len(tokens) and (tokens[at][0] == '"' or tokens[at][0].isidentifier()):
        names.append(_plain(tokens[at]))
        at += 1
        if tokens[at : at + 1] != ["."]:
            break
        at += 1
    return names, at


def _after_item(tokens: list[str], at: int) -> int:
    """Past what is in brackets, and the alias."""
    if tokens[at : at + 1] == ["("]:
        depth = 0
        while at < len(tokens):
            depth += {"(": 1, ")": -1}.get(tokens[at], 0)
            at += 1
            if depth == 0:
                break
    if at < len(tokens) and tokens[at].lower() == "as":
        at += 1
    is_alias = at < len(tokens) and (tokens[at][0] == '"' or tokens[at].isidentifier())
    return at + 1 if is_alias and tokens[at].lower() not in NO_ALIAS else at


def _is_of_function(tokens: list[str], at: int) -> bool:
    """Whether a FROM is one of `extract(day FROM at)`, or of IS DISTINCT FROM."""
    if tokens[at - 1 : at] and tokens[at - 1].lower() == "distinct":
        return True
    depth = 0
    for index in range(at - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(tokens[index], 0)
        if depth < 0:
            return tokens[index - 1].lower() in OF_FUNCTIONS
    return False


def _plain(name: str) -> str:
    """As the database knows it: names without quotes have small letters."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
