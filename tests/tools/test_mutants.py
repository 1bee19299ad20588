"""The faults that are put into a module: one small change each, and only where tests look."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants import mutants, mutated


def made(source: str) -> list[tuple[str, str]]:
    """Each fault by its kind, and the module with it."""
    return [(one.kind, mutated(source, one.number)) for one in mutants(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if a:\n    b()", [("negate", "if not a:\n    b()"), ("drop", "if a:\n    pass")]),
        ("x = a < b", [("Lt to LtE", "x = a <= b")]),
        ("x = a is not b", [("IsNot to Is", "x = a is b")]),
        ("x = a and b", [("and/or", "x = a or b")]),
        ("x = a - b", [("plus/minus", "x = a + b")]),
        ("x = 41", [("off by one", "x = 42")]),
        ("a.b = c", [("drop", "pass")]),
        ("while a:\n    break", [("negate", "while not a:\n    break"), ("drop", None)]),
        ("x = a if b else c", [("negate", "x = a if not b else c")]),
    ],
)
def test_each_kind_of_fault_is_one_change(
    source: str, expected: list[tuple[str, str | None]]
) -> None:
    found = dict(made(source))
    for kind, module in expected:
        assert kind in found
        assert module is None or found[kind] == module


@pytest.mark.parametrize(
    "source",
    [
        '"""Doc."""',
        "x: Literal[1]",
        "def f(a: Literal[1]) -> Literal[2]:\n    return a",
        "assert a == 1",
        "log.info('%d', 1)",
        "__slots__ = ('a', 'b')",
        "if TYPE_CHECKING:\n    import a",
        "def __repr__(self):\n    return a + 1",
        "x = f'{a + 1}'",
        "name = value",
    ],
)
def test_what_no_test_should_notice_is_left_alone(source: str) -> None:
    assert made(source) == []


def test_every_fault_of_a_real_module_is_python_and_another_module() -> None:
    source = Path(ast.__file__).read_text()[:60_000].rpartition("\ndef ")[0]
    same = ast.unparse(ast.parse(source))
    modules = [mutated(source, one.number) for one in mutants(source)[::40]]
    assert len(modules) > 5
    for module in modules:
        compile(module, "mutant", "exec")
        assert module != same


def test_a_number_that_no_mutant_has_is_refused() -> None:
    with pytest.raises(IndexError, match="no mutant 7"):
        mutated("x = 1", 7)
