"""Kerberos names become users by the rules, exactly as Kafka's KerberosShortNamer does it."""

from __future__ import annotations

import pytest

from ottla.model.errors import UserError
from ottla.security.sasl.kerberos_names import NoRule, UserNames

REALM = "REALM.COM"
RULES = (
    r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g",
    "RULE:[2:$1](App)",
    "RULE:[2:$1@$0](.*@OTHER)s/@.*//L",
    "RULE:[1:$1@$0](.*@UPPER)s/@.*///U",
    "DEFAULT",
)


@pytest.mark.parametrize(
    ("principal", "user"),
    [
        ("App.service-name@REALM.COM", "service-name"),
        ("App/host@REALM.COM", "App"),
        ("User/host@OTHER", "user"),
        ("user@UPPER", "USER"),
        ("alice@REALM.COM", "alice"),
        ("alice/admin@REALM.COM", "alice"),
        ("simple", "simple"),
    ],
)
def test_the_first_rule_for_a_name_makes_its_user(principal: str, user: str) -> None:
    assert UserNames(RULES, REALM).user(principal) == user


KAFKAS = (
    "RULE:[1:$1]/{0}",
    r"RULE:[2:$1](Test.*)s/ABC///{0}",
    r"RULE:[2:$1](ABC.*)s/ABC/XYZ/g/{0}",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g/{0}",
    "RULE:[2:$1]/{0}",
    "DEFAULT",
)


@pytest.mark.parametrize("letters", ["L", "U"])
@pytest.mark.parametrize(
    ("principal", "user"),
    [
        ("User@REALM.COM", "user"),
        ("TestABC/host@FOO.COM", "test"),
        ("ABC_User_ABC/host@FOO.COM", "xyz_user_xyz"),
        ("App.SERVICE-name/example.com@REALM.COM", "service-name"),
        ("User/root@REALM.COM", "user"),
    ],
)
def test_letters_change_as_in_kafkas_own_test(principal: str, user: str, letters: str) -> None:
    rules = [rule.format(letters) for rule in KAFKAS]
    expected = user if letters == "L" else user.upper()
    assert UserNames(rules, REALM).user(principal) == expected


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (RULES, "alice@ELSEWHERE"),
        (RULES, "a/b/c@REALM.COM"),
        (("RULE:[1:$1@$0]",), "alice@REALM.COM"),
        (("RULE:[1:$1](alice)s/alice//",), "alice@REALM.COM"),
        (("DEFAULT",), "@REALM.COM"),
        ((), "alice@REALM.COM"),
    ],
)
def test_a_name_that_no_rule_makes_a_plain_user_of_is_refused(
    rules: tuple[str, ...], principal: str
) -> None:
    with pytest.raises(NoRule):
        UserNames(rules, REALM).user(principal)


@pytest.mark.parametrize(
    ("rule", "base", "user"),
    [
        ("RULE:[1:$1]s/a/b/", "aaa", "baa"),
        ("RULE:[1:$1]s/a/b/g", "aaa", "bbb"),
        (r"RULE:[1:$1]s/(a)(a)/$2\$$1/", "aa", "a$a"),
        ("RULE:[1:x-$1-$0]", "a", "x-a-REALM.COM"),
    ],
)
def test_substitutions_are_javas(rule: str, base: str, user: str) -> None:
    assert UserNames((rule,), REALM).user(f"{base}@{REALM}") == user


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/g",
        "rule:[1:$1]",
        "rule:[1:$1]/L/U",
        "RULE:[1:$1]/LU",
        "RULE:[1:$1/L",
        "RULE:[1:$1]/l",
        "RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g",
        "RULE:",
        "RULE:[1:$2]",
        "RULE:[1:$1](*)",
        "RULE:[1:$1]s/a/$1/",
        "RULE:[1:$1]x",
    ],
)
def test_a_rule_that_is_none_is_refused_by_name(rule: str) -> None:
    with pytest.raises(UserError, match=r"sasl\.kerberos\.principal\.to\.local\.rules"):
        UserNames((rule,), REALM)
