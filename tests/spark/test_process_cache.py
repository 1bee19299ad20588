"""What a process of Spark's keeps for good."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from ottla.spark.connection import keep

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
