"""The contract covers every call a store has."""

from __future__ import annotations

import inspect

from ottla.store.port import BadVersion, Store
from tests.store import contract


def test_the_contract_uses_every_call_of_the_port() -> None:
    text = inspect.getsource(contract)
    calls = [name for name in vars(Store) if not name.startswith("_")]
    unused = [name for name in calls if f"store.{name}" not in text]
    # each home has its own way to lose a session, and what it stored
    assert sorted(unused) == ["on_session", "required"]


def test_the_contract_lists_every_promise_it_defines() -> None:
    defined = [
        value
        for name, value in vars(contract).items()
        if inspect.iscoroutinefunction(value) and name != "keep"
    ]
    assert {*contract.CONTRACT, *contract.CONTRACT_ON_SUSPENSION} == set(defined)


def test_a_refusal_says_what_and_where() -> None:
    refusal = BadVersion("/a", at=2)
    assert str(refusal) == "BadVersion: /a"
    assert (refusal.path, refusal.at) == ("/a", 2)
