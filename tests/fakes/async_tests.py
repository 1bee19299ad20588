"""A pytest plugin: `async def test_…` runs on virtual time.

Owns: on which event loop a coroutine test runs, and its limit.
Never: touches other tests, or fixtures.

The test runs on `VirtualLoop`, whose clock jumps to the next timer: an hour of waiting takes no
time. A test that takes more than an hour of virtual time fails, unless it is marked with another
limit: `virtual_limit(seconds)`. Sockets, threads and child processes need real time to pass, so a
test that uses them is marked `real_loop`: it runs on asyncio's own loop, and pytest-timeout bounds
it. A parameter `loop_factory` of a test makes the loop that it runs on, in real time as well. Each
example of a Hypothesis test has a loop of its own. A test that is decorated with `played_by` runs
where the given function runs it: in a simulated cluster, for instance.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import is_hypothesis_test

from tests.fakes import virtual_loop

LIMIT_S: Final = 3_600.0
REAL_LOOP: Final = "real_loop"
VIRTUAL_LIMIT: Final = "virtual_limit"
LOOP_FACTORY: Final = "loop_factory"

CoroutineTest: TypeAlias = Callable[..., Coroutine[Any, Any, None]]
LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        f"{REAL_LOOP}: an async test that runs on asyncio's own loop, in real time",
        f"{VIRTUAL_LIMIT}(seconds): how much virtual time an async test may take",
    ):
        config.addinivalue_line("markers", line)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test; True tells pytest that the test has been called."""
    function = pyfuncitem.obj
    if is_hypothesis_test(function):
        # Hypothesis calls the inner test for each example, so each has a loop of its own.
        inner = function.hypothesis.inner_test
        if inspect.iscoroutinefunction(inner):
            function.hypothesis.inner_test = _synchronous(inner, pyfuncitem)
        return None
    if not inspect.iscoroutinefunction(function):
        return None
    names = inspect.signature(function).parameters
    _synchronous(function, pyfuncitem)(**{name: pyfuncitem.funcargs[name] for name in names})
    return True


def _synchronous(function: CoroutineTest, item: pytest.Function) -> Callable[..., None]:
    def run(**arguments: Any) -> None:
        if LOOP_FACTORY in arguments or item.get_closest_marker(REAL_LOOP) is not None:
            with asyncio.Runner(loop_factory=arguments.get(LOOP_FACTORY)) as runner:
                runner.run(function(**arguments))
        else:
            virtual_loop.run(function(**arguments), _limit_s(item))

    return run


def played_by(
    play: Callable[..., object], *options: Any, **named: Any
) -> Callable[[CoroutineTest], Callable[..., None]]:
    """A coroutine test whose first argument comes from `play`, which runs it; others are pytest's.

    `play(test, *options, **named)` calls `test` with that argument, on a loop of its own.
    """

    def decorate(test: CoroutineTest) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**arguments: Any) -> None:
            play(functools.partial(test, **arguments), *options, **named)

        _, *others = inspect.signature(test).parameters.values()
        run.__dict__["__signature__"] = inspect.Signature(others)
        return run

    return decorate


def _limit_s(item: pytest.Function) -> float:
    marker = item.get_closest_marker(VIRTUAL_LIMIT)
    return LIMIT_S if marker is None else float(marker.args[0])
