from __future__ import annotations

import pytest

from ottla.client.consumer.base import OwningThread, ThreadOwnership
from ottla.client.consumer.errors import ConcurrentUse


@pytest.mark.spec("CON-49")
def test_a_second_user_is_told_who_is_inside() -> None:
    current = OwningThread(1, "one")
    owned = ThreadOwnership("thread", lambda: current)
    with owned:
        current = OwningThread(2, "two")
        with pytest.raises(ConcurrentUse, match="thread 'two' called it while thread 'one'"), owned:
            pass
        current = OwningThread(1, "one")
    current = OwningThread(2, "two")
    with owned:
        pass


@pytest.mark.spec("CON-49")
def test_the_same_user_may_enter_again() -> None:
    current = OwningThread(1, "one")
    owned = ThreadOwnership("thread", lambda: current)
    with owned:
        with owned:
            pass
        current = OwningThread(2, "two")
        with pytest.raises(ConcurrentUse), owned:
            pass
        current = OwningThread(1, "one")
