"""Brokers that come and go, and their disks."""

from __future__ import annotations

import pytest

from tests.controller.transcript import play


@pytest.mark.spec("CTL-42", "CTL-44", "CTL-46", "CTL-61", "CTL-70", "REP-71", "REP-72")
def test_leaders_leave_a_dead_broker_and_it_returns_as_a_follower() -> None:
    play("broker_dies_and_returns")


@pytest.mark.spec("CTL-61", "CTL-66")
def test_the_last_in_sync_replica_stays_in_the_isr_and_nobody_else_leads() -> None:
    play("last_replica_dies")


@pytest.mark.spec("CTL-35", "CTL-45", "CTL-47")
def test_a_broker_with_a_new_epoch_is_gone_and_come_back_and_a_new_address_is_told() -> None:
    play("broker_bounces")


@pytest.mark.spec("CTL-11", "REP-74")
def test_a_failed_disk_takes_only_its_own_replicas_offline() -> None:
    play("log_directory_fails")


def test_a_replica_with_a_corrupt_log_is_told_to_follow_as_soon_as_another_leads() -> None:
    play("corrupt_log")


@pytest.mark.spec("CTL-38")
def test_a_broker_that_fell_behind_hears_everything_once_more() -> None:
    play("conflict_and_backlog")
