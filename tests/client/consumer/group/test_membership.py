from __future__ import annotations

import pytest

from ottla.client.consumer.group.membership import PollInterval
from tests.fakes.manual_time import ManualClock


@pytest.mark.spec("CON-25", "CFG-118")
def test_a_user_who_does_not_poll_is_too_slow_one_who_is_inside_never() -> None:
    clock = ManualClock()
    poll_interval = PollInterval(clock, 300)
    clock.ns += 400_000_000
    assert not poll_interval.is_too_slow, "it has not begun to poll"
    poll_interval.on_poll()
    clock.ns += 299_000_000
    assert (poll_interval.left_ms, poll_interval.is_too_slow) == (1, False)
    clock.ns += 1_000_000
    assert poll_interval.is_too_slow
    poll_interval.enter()
    clock.ns += 1_000_000_000
    assert not poll_interval.is_too_slow
    poll_interval.leave()
    assert poll_interval.left_ms == 300
    clock.ns += 400_000_000
    poll_interval.on_poll()
    assert not poll_interval.is_too_slow
