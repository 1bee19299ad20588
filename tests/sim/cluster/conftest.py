"""What a scenario leaves behind is collected after it, not in the middle of another one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.sim.loop import bury


@pytest.fixture(autouse=True)
def collected_at_the_end() -> Iterator[None]:
    """Killed brokers leave coroutines that complain when they are collected."""
    gc.disable()
    yield
    bury()
    gc.enable()
