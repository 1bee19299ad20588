from __future__ import annotations

import pytest

from tools import tidy_names
from tools.tidy import Module


def module(path: str, source: str = "") -> Module:
    return Module(f"src/ottla/{path}", source)


def test_a_folder_holds_at_most_twenty_five_modules_but_for_apis_and_commands() -> None:
    log = [module(f"log/part_{number}.py") for number in range(26)]
    api = [module(f"api/call_{number}.py") for number in range(60)]
    few = [module(f"net/part_{number}.py") for number in range(25)]
    faults = list(tidy_names.crowded_folders([*log, *api, *few, module("log/__init__.py")]))
    assert [fault.path for fault in faults] == ["src/ottla/log"]


@pytest.mark.parametrize(
    "names",
    [("loader", "loading"), ("writer", "writing"), ("election", "elections"), ("watches", "watch")],
)
def test_modules_that_differ_in_their_ending_alone_are_twins(names: tuple[str, str]) -> None:
    pair = [module(f"log/{name}.py") for name in names]
    assert [fault.rule for fault in tidy_names.twins(pair)] == ["twins"]
    apart = [module(f"log/{names[0]}.py"), module(f"net/{names[1]}.py")]
    assert not list(tidy_names.twins(apart))


def test_a_few_small_modules_are_fine_and_many_are_not() -> None:
    most = tidy_names.SMALL_MODULES
    small = [module(f"log/part_{number}.py", "x = 1\n") for number in range(most + 1)]
    packages = [module(f"log/{number}/__init__.py") for number in range(60)]
    assert not list(tidy_names.small_modules([*small[1:], *packages]))
    assert [fault.rule for fault in tidy_names.small_modules(small)] == ["small-modules"]


def test_the_uses_of_any_may_only_become_fewer() -> None:
    most = tidy_names.ANY_USES
    annotated = "from typing import Any\n" + "x: Any = 1\n" * most
    assert not list(tidy_names.untyped([module("a.py", annotated)]))
    both = [module("a.py", annotated), module("b.py", "def f(value: dict[str, Any]): ...")]
    assert [fault.rule for fault in tidy_names.untyped(both)] == ["any"]


def test_functions_named_by_a_participle_may_only_become_fewer() -> None:
    most = tidy_names.PARTICIPLES
    named = "def _merged(): ...\n" * most
    fine = "def merge(): ...\nasync def merged_rows(): ...\ndef feed(): ...\n"
    state = "class A:\n    @property\n    def closed(self): ...\n"
    assert not list(tidy_names.participles([module("a.py", named + fine + state)]))
    both = [module("a.py", named), module("b.py", "async def sorted(): ...")]
    assert [fault.rule for fault in tidy_names.participles(both)] == ["participles"]


@pytest.mark.parametrize(
    "line",
    [
        "from tests.log.test_b import helper",
        "from tests.log import partition_files, test_b",
        "from tests.log import test_b as others",
        "from . import test_b",
        "import tests.log.test_b",
        "import tests.log.test_b as others",
    ],
)
def test_helpers_are_not_imported_from_tests(line: str) -> None:
    borrowed = Module("tests/log/test_a.py", line)
    assert [fault.rule for fault in tidy_names.borrowed_helpers(borrowed)] == ["borrowed-helper"]
    owned = Module("tests/log/test_a.py", "from tests.log.partition_files import helper")
    assert not list(tidy_names.borrowed_helpers(owned))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("broker/doors.py", ""),
        ("broker/listeners.py", "class Doors:\n    pass"),
        ("controller/brokers.py", "def seen():\n    pass"),
        ("controller/brokers.py", "class A:\n    def _told(self):\n        pass"),
    ],
)
def test_dialect_words_in_names_are_faults(path: str, source: str) -> None:
    assert [fault.rule for fault in tidy_names.dialect(module(path, source))] == ["dialect"]


def test_the_fields_own_words_are_fine() -> None:
    source = "class ListenerSet:\n    def on_brokers_seen(self):\n        pass\n"
    assert not list(tidy_names.dialect(module("broker/listeners.py", source)))


def test_dialect_in_log_lines_and_errors_is_a_fault_and_elsewhere_is_not() -> None:
    logged = module("a.py", 'log.info("a stored setting is left out: %s", name)')
    raised = module("a.py", 'raise UserError("x is not a name")')
    stored = module("a.py", 'text = "left out"')
    assert [fault.rule for fault in tidy_names.phrases(logged)] == ["phrase"]
    assert [fault.rule for fault in tidy_names.phrases(raised)] == ["phrase"]
    assert not list(tidy_names.phrases(stored))


LATER = "    pass\n" * tidy_names.VAGUE_LINES


@pytest.mark.parametrize(
    "source",
    [
        f"def f():\n    found = g()\n{LATER}    return found\n",
        f"def f(told):\n{LATER}    return told\n",
        f"async def f():\n    left = 9\n    left -= 1\n{LATER}    left -= 1\n",
    ],
)
def test_a_value_that_lives_long_is_named_by_what_it_holds(source: str) -> None:
    assert [fault.rule for fault in tidy_names.vague_values(module("a.py", source))] == ["vague"]


@pytest.mark.parametrize(
    "source",
    [
        f"def f():\n    found = g()\n    h(found)\n{LATER}",
        f"def f():\n    for one in a:\n        g(one)\n{LATER}    for one in b:\n        g(one)\n",
        f"def f():\n    a = lambda done: 1\n{LATER}    return lambda done: done\n",
        f"def f():\n    partition = g()\n{LATER}    return partition\n",
        f"def f():\n    return a.found\n{LATER}    a.found()\n",
    ],
)
def test_a_short_life_or_a_noun_is_fine(source: str) -> None:
    assert not list(tidy_names.vague_values(module("a.py", source)))
