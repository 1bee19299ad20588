"""Whether a request may have what it asks for.

Owns the rules that hold now and what was decided by them. Every refusal is a line in the audit log
(`ottla.security.audit`). Never knows where rules come from, nor what an API means.

A broker without an authorizer has an `Authorizer` as well, one that allows everything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from ottla.security.acl import CLUSTER_NAME, MEANINGFUL, Kind, Operation, Rules

audit = logging.getLogger("ottla.security.audit")

REMEMBERED_MAX: Final = 10_000
"""Decisions kept for whoever asks again; beyond that all are forgotten and made anew."""


class Who(Protocol):
    """Whoever asks: `principal` is who they are, `address` from where."""

    principal: str
    address: str
    is_broker: bool


class Authorizer:
    """Decides by rules, or allows everything while it is not in force."""

    __slots__ = ("_decided", "_open_by_default", "_super_users", "in_force", "rules")

    def __init__(
        self,
        *,
        in_force: bool = False,
        super_users: Iterable[str] = (),
        open_by_default: bool = False,
    ) -> None:
        self.in_force = in_force
        self.rules: Rules | None = None
        """None until they have been read: nobody but super users may do anything."""
        self._super_users = frozenset(super_users)
        self._open_by_default = open_by_default
        self._decided: dict[tuple[str, str, Operation, Kind, str], bool] = {}

    def follow(self, rules: Rules) -> None:
        """These rules hold from now on."""
        self.rules = rules
        self._decided.clear()

    def allows(
        self, who: Who, operation: Operation, kind: Kind, name: str, *, noted: bool = True
    ) -> bool:
        """`noted` is False for a question that refuses nothing, such as what to leave out."""
        if not self.in_force or self._is_trusted(who):
            return True
        asked = (who.principal, who.address, operation, kind, name)
        allowed = self._decided.get(asked)
        if allowed is None:
            allowed = self._decided[asked] = self._decide(*asked)
            if len(self._decided) > REMEMBERED_MAX:
                self._decided.clear()
        if not allowed and noted:
            audit.info(
                "%s from %s may not %s %s %r",
                who.principal, who.address, operation.name, kind.name, name,
            )  # fmt: skip
        return allowed

    def allows_some(self, who: Who, operation: Operation, kind: Kind) -> bool:
        """Whether it is allowed with at least one resource of a kind."""
        if not self.in_force or self._is_trusted(who):
            return True
        if self.rules is None:
            return False
        allowed = self.rules.allow_some(who.principal, who.address, operation, kind)
        return self._open_by_default if allowed is None else allowed

    def allows_on_cluster(self, who: Who, operation: Operation) -> bool:
        return self.allows(who, operation, Kind.CLUSTER, CLUSTER_NAME)

    def operations(self, who: Who, kind: Kind, name: str) -> int:
        """All that is allowed with a resource, a bit for each operation, as replies tell it."""
        return sum(
            1 << operation
            for operation in MEANINGFUL[kind]
            if self.allows(who, operation, kind, name, noted=False)
        )

    def _is_trusted(self, who: Who) -> bool:
        return who.is_broker or who.principal in self._super_users

    def _decide(
        self, principal: str, host: str, operation: Operation, kind: Kind, name: str
    ) -> bool:
        if self.rules is None:
            return False
        allowed = self.rules.allow(principal, host, operation, kind, name)
        return self._open_by_default if allowed is None else allowed
