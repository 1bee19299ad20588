"""What a process of Spark's keeps for good."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from ottla.spark.worker_daemon import keep

NAME = "tests.spark.lasting_for_a_test"


@pytest.fixture(autouse=True)
def collected_again() -> Iterator[None]:
    yield
    sys.modules.pop(NAME, None)
    gc.unfreeze()


def test_what_was_imported_is_out_of_the_collectors_sight() -> None:
    keep()
    module = sys.modules[NAME] = ModuleType(NAME)
    assert any(each is module for each in gc.get_objects())
    keep()
    assert not any(each is module for each in gc.get_objects())


def test_nothing_is_kept_twice_nor_what_a_call_made() -> None:
    keep()
    made: list[object] = []
    made.append(made)
    keep()
    assert any(each is made for each in gc.get_objects())


def test_a_process_that_only_plans_imports_no_client() -> None:
    program = (
        "import sys, ottla.spark.source, ottla.spark.stream_reader, ottla.spark.writer\n"
        "print([n for n in ('ottla.client.cluster', 'pyarrow', 'asyncio') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
