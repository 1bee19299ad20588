from __future__ import annotations

import threading

import pytest

import ottla
from ottla import UserError
from ottla.testing import Broker
from tools.nodes import free_ports


def test_building_an_admin_does_nothing_yet() -> None:
    before = admin_threads()
    ottla.Admin(bootstrap_servers="127.0.0.1:1")
    assert admin_threads() <= before


def admin_threads() -> set[threading.Thread]:
    """Those of admins alone: brokers that other tests keep have threads that come and go."""
    return {thread for thread in threading.enumerate() if thread.name == "ottla-admin"}


def test_closing_ends_the_thread_and_twice_is_once(admin_broker: Broker) -> None:
    before = admin_threads()
    admin = ottla.Admin(bootstrap_servers=admin_broker.bootstrap_servers)
    admin.list_topics()
    assert len(admin_threads() - before) == 1
    admin.close()
    admin.close()
    assert admin_threads() <= before


def test_a_broker_out_of_reach_is_a_timeout_that_says_where() -> None:
    [port] = free_ports(1)
    with (
        ottla.Admin(bootstrap_servers=f"127.0.0.1:{port}", default_api_timeout_ms=300) as admin,
        pytest.raises(TimeoutError, match=str(port)),
    ):
        admin.list_topics()


def test_a_mistake_in_an_option_is_said_before_anything_starts() -> None:
    with pytest.raises(UserError, match=r"request\.timeout\.ms"):
        ottla.Admin(request_timeout_ms="soon")
