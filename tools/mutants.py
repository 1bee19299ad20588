"""Small faults that may be put into a Python module, one at a time.

Owns: the kinds of fault, and where each may stand. A fault is found again by its number, which
depends on nothing but the source. Never: runs anything (`tools/mutate.py`).

Left out is what no test should notice: annotations, texts of errors and log lines, assertions,
`__repr__`, `__slots__`, and what only a type checker reads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

SWAPPED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
LOGGERS: Final = frozenset({"log", "logger", "logging"})
NOT_FOR_TESTS: Final = frozenset({"__repr__", "__str__"})


class Mutant(NamedTuple):
    """One fault: what kind, in which line, and what the line says there."""

    number: int
    kind: str
    line: int
    text: str


class _Site(NamedTuple):
    """A place for a fault, and the change to the tree that makes it."""

    kind: str
    node: ast.AST
    change: Callable[[], None]


def mutants(source: str) -> list[Mutant]:
    """Every fault that may be put into this module."""
    return [
        Mutant(number, site.kind, _line(site.node), _text(site.node))
        for number, site in enumerate(_sites(ast.parse(source)))
    ]


def mutated(source: str, number: int) -> str:
    """The module with this fault in it; comments are lost."""
    tree = ast.parse(source)
    for at, site in enumerate(_sites(tree)):
        if at == number:
            site.change()
            return ast.unparse(ast.fix_missing_locations(tree))
    raise IndexError(f"there is no mutant {number}")


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _text(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0][:90]


def _sites(tree: ast.Module) -> list[_Site]:
    """Collected before any is changed: a change must not make or hide others."""
    return [site for node in _tested(tree) for site in _sites_of(node)]


def _tested(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that a test could notice, in the order of the source."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not _is_for_others(node, child):
            yield from _tested(child)


def _is_for_others(parent: ast.AST, child: ast.AST) -> bool:
    """Whether something is for type checkers, people or `python -O`."""
    if isinstance(child, ast.Assert | ast.JoinedStr | ast.arg):
        return True
    if isinstance(child, ast.FunctionDef) and child.name in NOT_FOR_TESTS:
        return True
    if isinstance(parent, ast.AnnAssign) and child is parent.annotation:
        return True
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and child is parent.returns:
        return True
    if isinstance(child, ast.Assign):
        return any(isinstance(to, ast.Name) and to.id == "__slots__" for to in child.targets)
    if isinstance(child, ast.If):
        return isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
    if isinstance(child, ast.Expr):
        return isinstance(child.value, ast.Constant) or _logs(child.value)
    return isinstance(child, ast.Call) and _logs(child)


def _logs(node: ast.expr) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    owner = node.func.value
    return isinstance(owner, ast.Name) and owner.id in LOGGERS


def _sites_of(node: ast.AST) -> Iterator[_Site]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _Site("negate", node.test, _negation(node))
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            other = SWAPPED[type(operator)]
            yield _Site(f"{type(operator).__name__} to {other.__name__}", node, _set(node, at))
    if isinstance(node, ast.BoolOp):
        yield _Site("and/or", node, _other_bool(node))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield _Site("plus/minus", node, _other_sign(node))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield _Site("off by one", node, _one_more(node))
    yield from _dropped(node)


def _dropped(node: ast.AST) -> Iterator[_Site]:
    """Statements that a block can do without, as far as names go."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        for at, statement in enumerate(block):
            if isinstance(statement, ast.Expr):
                if _is_for_others(node, statement):
                    continue
            elif isinstance(statement, ast.Assign):
                if not isinstance(statement.targets[0], ast.Attribute | ast.Subscript):
                    continue
            elif not isinstance(
                statement, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete
            ):
                continue
            yield _Site("drop", statement, _pass_instead(block, at))


def _negation(node: ast.If | ast.While | ast.IfExp) -> Callable[[], None]:
    def change() -> None:
        node.test = ast.UnaryOp(ast.Not(), node.test)

    return change


def _set(node: ast.Compare, at: int) -> Callable[[], None]:
    def change() -> None:
        node.ops[at] = SWAPPED[type(node.ops[at])]()

    return change


def _other_bool(node: ast.BoolOp) -> Callable[[], None]:
    def change() -> None:
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()

    return change


def _other_sign(node: ast.BinOp) -> Callable[[], None]:
    def change() -> None:
        node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()

    return change


def _one_more(node: ast.Constant) -> Callable[[], None]:
    def change() -> None:
        assert isinstance(node.value, int)
        node.value = node.value + 1

    return change


def _pass_instead(block: list[ast.stmt], at: int) -> Callable[[], None]:
    def change() -> None:
        block[at] = ast.copy_location(ast.Pass(), block[at])

    return change
