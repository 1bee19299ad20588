"""Kerberos names, and the rules that make users of them. Pure.

Owns: the syntax of `sasl.kerberos.principal.to.local.rules`, as Kafka reads and applies it. Never
lets a client in whose name no rule is for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.model.errors import UserError

RULES: Final = "sasl.kerberos.principal.to.local.rules"
EXPECTED: Final = "DEFAULT or RULE:[n:string](pattern)s/pattern/replacement/g/L"
_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"RULE:\[(?P<components>\d{1,2}):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<letters>[LU])?"
)
_PARAMETER: Final = re.compile(r"\$(\d*)")
_GROUP: Final = re.compile(r"\\(.)|\$(\d)", re.DOTALL)
_NOT_SIMPLE: Final = re.compile(r"[/@]")


class NoRule(Exception):
    """No rule makes a user of a name; the text is for the audit log."""


class KerberosName(NamedTuple):
    """The parts of kafka/broker.example.com@EXAMPLE.COM."""

    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, text: str) -> KerberosName:
        match = _NAME.fullmatch(text)
        if match is not None:
            return cls(match[1], match[2], match[3])
        if "@" in text:
            raise NoRule("malformed Kerberos name")
        return cls(text, None, None)


class Rule(NamedTuple):
    """One rule; without `components`, DEFAULT: names of the default realm, without the realm."""

    text: str
    components: int | None = None
    format: str = ""
    match: str | None = None
    pattern: str | None = None
    replacement: str = ""
    replaces_all: bool = False
    letters: str = ""

    def apply(self, name: KerberosName, default_realm: str) -> str | None:
        """The user, or None if the rule is not for this name."""
        if self.components is None:
            user = name.service if name.realm == default_realm else None
        else:
            user = self._user(name)
        if user is not None and _NOT_SIMPLE.search(user):
            raise NoRule(f"rule {self.text} makes a name that contains '/' or '@'")
        return {"L": str.lower, "U": str.upper}.get(self.letters, str)(user) if user else user

    def _user(self, name: KerberosName) -> str | None:
        values = [name.realm or "", name.service, *(() if name.host is None else (name.host,))]
        if len(values) - 1 != self.components:
            return None
        base = _PARAMETER.sub(lambda match: values[int(match[1])], self.format)
        import re2  # only where rules are set: it takes a while to load

        if self.match is not None and re2.fullmatch(self.match, base) is None:
            return None
        if self.pattern is None:
            return base
        replaced: str = re2.sub(
            self.pattern,
            lambda match: _GROUP.sub(
                lambda group: group[1] or match.group(int(group[2])) or "", self.replacement
            ),
            base,
            count=0 if self.replaces_all else 1,
        )
        return replaced


class UserNames:
    """What makes users of Kerberos names."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        self._rules = tuple(_rule(text) for text in rules)
        self._default_realm = default_realm

    def user(self, principal: str) -> str:
        """The user of the first rule that is for this name, or NoRule."""
        name = KerberosName.parse(principal)
        if name.host is None and name.realm is None:
            return name.service
        for rule in self._rules:
            user = rule.apply(name, self._default_realm)
            if user is not None:
                if not user:
                    break
                return user
        raise NoRule(f"no rule of {RULES} matches this name")


def _rule(text: str) -> Rule:
    if text == "DEFAULT":
        return Rule(text)
    match = _RULE.fullmatch(text)
    if match is None:
        raise UserError(f"{RULES}={text!r}: expected {EXPECTED}")
    components = int(match["components"])
    for parameter in _PARAMETER.findall(match["format"]):
        if not parameter or int(parameter) > components:
            raise UserError(f"{RULES}={text!r}: expected $0 to ${components} in the string")
    _check_patterns(text, match)
    return Rule(
        text, components, match["format"], match["match"], match["pattern"],
        match["replacement"] or "", match["all"] is not None, match["letters"] or "",
    )  # fmt: skip


def _check_patterns(text: str, match: re.Match[str]) -> None:
    import re2

    groups = 0
    for pattern in (match["match"], match["pattern"]):
        try:
            groups = 0 if pattern is None else re2.compile(pattern).groups
        except re2.error as error:
            raise UserError(f"{RULES}={text!r}: invalid pattern {pattern!r}: {error}") from None
    for _, number in _GROUP.findall(match["replacement"] or ""):
        if number and int(number) > groups:
            raise UserError(f"{RULES}={text!r}: the pattern has no group {number}")
