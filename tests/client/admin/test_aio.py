from __future__ import annotations

import inspect

import pytest

import ottla
import ottla.aio
from ottla import UserError
from ottla.testing import Broker


def calls(kind: type) -> set[str]:
    return {
        name
        for name, member in vars(kind).items()
        if callable(member) and not name.startswith("_") and name not in ("close", "wait_for")
    }


def test_both_faces_have_the_same_calls() -> None:
    assert calls(ottla.aio.Admin) == calls(ottla.Admin)
    assert len(calls(ottla.Admin)) > 30


@pytest.mark.parametrize("name", sorted(calls(ottla.aio.Admin)))
def test_every_call_says_what_it_does_and_keeps_its_options(name: str) -> None:
    call, face = getattr(ottla.aio.Admin, name), getattr(ottla.Admin, name)
    assert call.__doc__
    assert face.__doc__ == call.__doc__
    assert inspect.signature(face).parameters.keys() == inspect.signature(call).parameters.keys()


@pytest.mark.real_loop
async def test_the_admin_for_asyncio_is_a_context(admin_broker: Broker, name: str) -> None:
    at = {"bootstrap.servers": admin_broker.bootstrap_servers}
    async with ottla.aio.Admin(config=at) as admin:
        await admin.create_topic(name)
        assert name in await admin.list_topics()


def test_an_unknown_option_names_the_nearest_known_one() -> None:
    with pytest.raises(UserError, match="did you mean bootstrap_servers"):
        ottla.aio.Admin(bootstrap_server="localhost:9092")
