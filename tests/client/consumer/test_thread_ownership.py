from __future__ import annotations

import pytest

from ottla.client.consumer.errors import ConcurrentUse
from ottla.client.consumer.thread_ownership import Ownership, User


@pytest.mark.spec("CON-49")
def test_a_second_user_is_told_who_is_inside() -> None:
    current = User(1, "one")
    owned = Ownership("thread", lambda: current)
    with owned:
        current = User(2, "two")
        with pytest.raises(ConcurrentUse, match="thread 'two' called it while thread 'one'"), owned:
            pass
        current = User(1, "one")
    current = User(2, "two")
    with owned:
        pass


@pytest.mark.spec("CON-49")
def test_the_same_user_may_enter_again() -> None:
    current = User(1, "one")
    owned = Ownership("thread", lambda: current)
    with owned:
        with owned:
            pass
        current = User(2, "two")
        with pytest.raises(ConcurrentUse), owned:
            pass
        current = User(1, "one")
