"""What every test can count on: a broker, Hypothesis without deadlines, seeds for simulations.

`async def` tests run on virtual time (`tests/fakes/async_tests.py`), those that take the last
descriptor in a process of their own (`tests/fakes/own_process.py`).
A test with an argument `sim_seed` runs once for each seed of `make sim SEED=… N=…`, one with
`cluster_seed`, whose runs take longer, for four fifths of them.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# The first for a checkout that is not installed.
pytest_plugins = [
    "ottla.testing.plugin",
    "tests.skips",
    "tests.failures",
    "tests.fakes.async_tests",
    "tests.fakes.own_process",
]

# Deadlines measure the machine, which is shared, and not the code.
settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ottla")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports are made with the collector at rest.

    A report parses the source of what failed. If a collection falls into that and ends a future
    whose exception nobody took, its traceback is logged, which parses as well, and Python 3.11
    loses count: the whole run ended with an internal error, and nobody heard which test had failed.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        if was_on:
            gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption("--sim-seed", type=int, default=0, help="the first seed to run")
    group.addoption("--sim-count", type=int, default=20, help="how many seeds to run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sim_seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--sim-seed")
        count = metafunc.config.getoption("--sim-count")
        metafunc.parametrize("sim_seed", range(first, first + count))
    if "cluster_seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--sim-seed")
        count = max(1, metafunc.config.getoption("--sim-count") * 4 // 5)
        metafunc.parametrize("cluster_seed", range(first, first + count))
