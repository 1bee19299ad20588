"""Settings of who may do what."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.security import AUTHORIZERS
from ottla.model.errors import UserError


@pytest.mark.parametrize("name", ["", *AUTHORIZERS])
def test_kafkas_authorizer_has_the_names_of_its_releases(name: str) -> None:
    assert BrokerConfig.parse({"authorizer.class.name": name}).authorizer_class_name == name


def test_super_users_are_parted_by_semicolons() -> None:
    config = BrokerConfig.parse({"super.users": "User:CN=a,O=b; User:admin;"})
    assert config.super_user_names == ("User:CN=a,O=b", "User:admin")
    assert BrokerConfig.parse({}).super_user_names == ()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("authorizer.class.name", "com.example.Mine", "expected empty, or one of org.apache"),
        ("super.users", "admin", "expected a type and a name, such as User:admin"),
        ("super.users", "User:a;User:", "expected a type and a name"),
        ("allow.everyone.if.no.acl.found", "maybe", "expected true or false"),
    ],
)
def test_a_mistake_names_the_key_and_what_was_expected(key: str, value: str, expected: str) -> None:
    with pytest.raises(UserError, match=f"^{key}=.*: {expected}"):
        BrokerConfig.parse({key: value})
