"""Delay and retry: nothing before it is due, in order, and soon after.

How soon is judged by the second only in the long runs, alone on a machine.
"""

from __future__ import annotations

import pytest

from tests.spark.pipelines.delayed_delivery import FEW, STEADY, delay, retry
from tests.spark.pipelines.jobs import Stage


@pytest.mark.spec("APP-15")
def test_delay_delivers_in_order_and_never_before_the_time(stage: Stage) -> None:
    delay(stage, FEW)


@pytest.mark.slow
@pytest.mark.spec("APP-15")
def test_delay_delivers_within_a_second(stage: Stage) -> None:
    delay(stage, STEADY)


@pytest.mark.spec("APP-15", "APP-16")
def test_retry_gives_back_later_each_time_and_at_last_gives_up(stage: Stage) -> None:
    retry(stage, FEW)


@pytest.mark.slow
@pytest.mark.spec("APP-15", "APP-16")
def test_retry_gives_back_within_a_second(stage: Stage) -> None:
    retry(stage, STEADY)
