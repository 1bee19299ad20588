"""Topics on their way out."""

from __future__ import annotations

import pytest

from tests.controller.transcript import play


@pytest.mark.spec("CTL-51", "CTL-52", "CTL-53", "CTL-54", "CTL-55", "CTL-56")
def test_a_topic_is_gone_when_every_replica_has_said_so() -> None:
    play("deletion")


@pytest.mark.spec("CTL-51", "CTL-53")
def test_a_dead_broker_delays_a_deletion_but_not_the_client() -> None:
    play("deletion_waits")


@pytest.mark.spec("CTL-08", "CTL-50")
def test_requests_found_in_the_store_are_obeyed_or_removed() -> None:
    play("deletion_asked_in_store")


@pytest.mark.spec("CTL-51")
def test_a_new_controller_goes_on_with_a_deletion() -> None:
    play("deletion_resumed")


def test_a_replica_without_a_log_does_not_hold_a_deletion_up() -> None:
    """The reply to a LeaderAndIsr from before the deletion may come after its beginning."""
    play("deletion_of_missing_log")


@pytest.mark.spec("CTL-51", "CTL-53")
def test_a_replica_that_could_not_be_deleted_does_not_hold_the_deletion_up_for_ever() -> None:
    """Its broker retries by itself and notifies the controller, without having been restarted."""
    play("deletion_retried")
