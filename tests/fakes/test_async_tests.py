"""Coroutine tests: on virtual time unless marked, and they can fail."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from tests.fakes.async_tests import LoopFactory
from tests.fakes.virtual_loop import VirtualLoop

pytest_plugins = ["pytester"]
TEN_MINUTES_S = 600.0


async def test_an_async_test_runs_on_virtual_time() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    started_s, real_s = loop.time(), monotonic()
    await asyncio.sleep(TEN_MINUTES_S)
    assert loop.time() - started_s == TEN_MINUTES_S
    assert monotonic() - real_s < TEN_MINUTES_S


@pytest.mark.real_loop
async def test_a_marked_test_runs_on_asyncios_own_loop() -> None:
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)


@pytest.mark.parametrize("loop_factory", [asyncio.SelectorEventLoop, VirtualLoop])
async def test_a_test_runs_on_the_loop_that_its_parameter_makes(loop_factory: LoopFactory) -> None:
    assert type(asyncio.get_running_loop()) is loop_factory


@pytest.mark.virtual_limit(10 * TEN_MINUTES_S)
async def test_a_test_may_take_as_much_virtual_time_as_its_marker_says() -> None:
    await asyncio.sleep(9 * TEN_MINUTES_S)


@pytest.mark.parametrize("number", [1, 2])
async def test_an_async_test_takes_fixtures_and_parameters(
    number: int, request: pytest.FixtureRequest
) -> None:
    assert request.node.name.endswith(f"[{number}]")


def test_a_failing_or_endless_async_test_is_reported_as_failed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio, pytest

        async def test_fails():
            await asyncio.sleep(1)
            assert False, "as planned"

        async def test_waits_for_ever():
            await asyncio.Event().wait()

        @pytest.mark.real_loop
        async def test_fails_in_real_time():
            assert False, "as planned"

        @pytest.mark.virtual_limit(1)
        async def test_takes_longer_than_its_marker_says():
            await asyncio.sleep(2)

        async def test_passes():
            await asyncio.sleep(1)
        """
    )
    result = pytester.runpytest_inprocess("-p", "tests.fakes.async_tests")
    result.assert_outcomes(failed=4, passed=1)
    result.stdout.fnmatch_lines(["*TimeoutError*"])
