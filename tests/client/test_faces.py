"""The synchronous clients offer what the asynchronous ones do, written out in full."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import ottla
from ottla import aio

PAIRS = [(ottla.Admin, aio.Admin), (ottla.Producer, aio.Producer), (ottla.Consumer, aio.Consumer)]
ONLY_SYNC = {
    "Admin": {"wait_for"},  # several calls in one visit to the loop
    "Producer": set(),
    "Consumer": set(),
}
ONLY_ASYNC = {
    # What an admin's calls are built from.
    "Admin": {"ask", "brokers", "for_each", "on_every_broker", "once", "retry_lookup", "view"},
    "Producer": {"start"},
    "Consumer": set(),
}


def methods(client: type) -> dict[str, Callable[..., Any]]:
    return {
        name: method
        for name, method in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_both_faces_of_a_client_have_the_same_methods(blocking: type, asynchronous: type) -> None:
    name = blocking.__name__
    only_sync = set(methods(blocking)) - set(methods(asynchronous))
    only_async = set(methods(asynchronous)) - set(methods(blocking))
    assert (only_sync, only_async) == (ONLY_SYNC[name], ONLY_ASYNC[name])


def test_the_admins_methods_have_equal_parameters_results_and_texts() -> None:
    asynchronous = methods(aio.Admin)
    for name, method in methods(ottla.Admin).items():
        if name in ONLY_SYNC["Admin"] | {"close"}:
            continue
        assert inspect.signature(method) == inspect.signature(asynchronous[name]), name
        assert inspect.getdoc(method) == inspect.getdoc(asynchronous[name]), name


@pytest.mark.parametrize("client", [client for pair in PAIRS for client in pair])
def test_every_method_is_written_in_its_class_with_types_and_a_text(client: type) -> None:
    for name, method in methods(client).items():
        hints = inspect.signature(method)
        assert hints.return_annotation is not inspect.Signature.empty, name
        assert all(
            parameter.annotation is not inspect.Parameter.empty
            for parameter in list(hints.parameters.values())[1:]
        ), name
        assert inspect.getdoc(method), name
        assert method.__qualname__.partition(".")[0] in {base.__name__ for base in client.__mro__}
