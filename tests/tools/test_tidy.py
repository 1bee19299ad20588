from __future__ import annotations

from pathlib import Path

import pytest

from tools import tidy
from tools.tidy import Fault, Module, Rule, Waiver


def rules_broken(source: str, path: str = "src/ottla/log/example.py") -> set[str]:
    module = Module(path, source)
    return {fault.rule for rule in tidy.RULES for fault in rule(module)}


def faults_of(rule: Rule, source: str, path: str = "src/ottla/log/example.py") -> list[Fault]:
    return list(rule(Module(path, source)))


CLEAN = '"""Says what it is for."""\n\n\ndef act(one: int) -> int:\n    return one\n'


def test_a_small_module_with_a_docstring_has_no_faults() -> None:
    assert rules_broken(CLEAN) == set()


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.monotonic()",
        "from time import monotonic\nmonotonic()",
        "import time as t\nt.sleep(1)",
        "import random\nrandom.random()",
        "import os\nos.fsync(3)",
        "import asyncio\nasyncio.create_task(work())",
        "import socket\nsocket.socket()",
        "from datetime import datetime\ndatetime.now()",
        "import threading\nthreading.Lock()",
        "def late():\n    import time\n    return time.time()",
    ],
)
def test_a_banned_call_is_found_however_it_is_imported(source: str) -> None:
    assert [fault.rule for fault in faults_of(tidy.banned_calls, source)] == ["banned-call"]


@pytest.mark.parametrize(
    ("source", "home"),
    [
        ("import time\ntime.monotonic_ns()", "src/ottla/model/clock.py"),
        ("import os\nos.fsync(3)", "src/ottla/log/files.py"),
        ("import socket\nsocket.socket()", "src/ottla/net/listener.py"),
    ],
)
def test_a_banned_call_is_allowed_in_its_home(source: str, home: str) -> None:
    assert faults_of(tidy.banned_calls, source, home) == []


def test_calls_on_values_that_only_share_a_name_are_let_alone() -> None:
    assert faults_of(tidy.banned_calls, "def act(time):\n    return time.time()") == []


def test_a_seeded_dice_may_be_made_and_a_task_may_be_started_in_a_group() -> None:
    source = "import random\ndice = random.Random(7)\ntasks.create_task(work())"
    assert faults_of(tidy.banned_calls, source) == []


def test_tests_neither_sleep_nor_patch_but_may_wait_for_real_processes() -> None:
    sleeping = "import time\ntime.sleep(1)"
    patching = "from unittest import mock\nmock.patch('x')"
    assert faults_of(tidy.banned_calls, sleeping, "tests/log/test_x.py")
    assert faults_of(tidy.banned_calls, patching, "tests/log/test_x.py")
    assert not faults_of(tidy.banned_calls, sleeping, "tests/cluster/test_x.py")


def test_a_module_without_a_docstring_is_a_fault_but_a_test_needs_none() -> None:
    assert "docstring" in rules_broken("x = 1\n")
    assert "docstring" not in rules_broken("x = 1\n", "tests/log/test_x.py")


def test_a_long_function_is_a_fault_where_it_starts() -> None:
    body = "\n".join("    a = 1" for _ in range(tidy.FUNCTION_LINES))
    [fault] = faults_of(tidy.length, f"x = 1\n\ndef long():\n{body}\n")
    assert (fault.rule, fault.line) == ("function-length", 3)


def test_a_long_module_is_a_fault() -> None:
    source = "x = 1\n" * (tidy.MODULE_LINES + 1)
    assert [fault.rule for fault in faults_of(tidy.length, source)] == ["module-length"]


def test_five_positional_parameters_are_enough() -> None:
    assert not faults_of(tidy.surface, "def act(a, b, c, d, e, *, f, g): ...")
    assert not faults_of(tidy.surface, "class A:\n    def act(self, a, b, c, d, e): ...")
    assert faults_of(tidy.surface, "def act(a, b, c, d, e, f): ...")


def test_twelve_public_methods_are_enough_and_properties_are_not_counted() -> None:
    twelve = "".join(f"    def m{n}(self): ...\n" for n in range(12))
    extra = "    @property\n    def p(self): ...\n    @p.setter\n    def p(self, to): ...\n"
    extra += "    def _private(self): ...\n"
    assert not faults_of(tidy.surface, f"class A:\n{twelve}{extra}")
    assert faults_of(tidy.surface, f"class A:\n{twelve}    def one_more(self): ...\n")


@pytest.mark.parametrize("path", ["src/ottla/log/utils.py", "src/ottla/common.py"])
def test_a_module_is_named_after_what_it_holds(path: str) -> None:
    assert faults_of(tidy.names, CLEAN, path)


@pytest.mark.parametrize("name", ["LogManager", "FetchHelper", "StoreImpl"])
def test_a_class_is_named_after_what_it_is(name: str) -> None:
    assert faults_of(tidy.names, f"class {name}: ...")


def test_work_left_in_the_source_is_a_fault() -> None:
    mark = "FIX" + "ME"
    assert faults_of(tidy.left_overs, f"x = 1  # {mark}: later\n")
    assert not faults_of(tidy.left_overs, "PREFIXME = 1\n")


def test_a_waiver_excuses_one_rule_in_one_file() -> None:
    faults = [Fault("a.py", 1, "name", "x"), Fault("a.py", 2, "parameters", "y")]
    assert tidy.waive(faults, [Waiver("a.py", "name")]) == faults[1:]


def test_a_waiver_that_waives_nothing_is_a_fault() -> None:
    [fault] = tidy.waive([], [Waiver("a.py", "name")])
    assert fault.rule == "waiver"


def test_a_waiver_needs_a_reason() -> None:
    text = "# comment\na.py name because it is Kafka's word\nb.py name\n"
    assert tidy.read_waivers(text) == [Waiver("a.py", "name")]


def test_the_largest_modules_and_longest_functions_are_always_shown() -> None:
    modules = [Module(f"src/ottla/m{n}.py", CLEAN + "x = 1\n" * n) for n in range(8)]
    shown = list(tidy.sizes(modules))
    assert shown[0] == "largest modules"
    assert "src/ottla/m7.py" in shown[1]
    assert len(shown) == 12


def test_a_whole_tree_is_checked_and_its_faults_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pyproject.toml", "ARCHITECTURE.md", "tools/waivers.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "bad.py").write_text("x = 1\n")
    assert tidy.main(tmp_path) == 1
    assert "src/bad.py:1:" in capsys.readouterr().out
