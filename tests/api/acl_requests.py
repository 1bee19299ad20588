"""Access rules over a socket, as no client library would ask for them.

Owns: the fields of the three ACL APIs, and settings with an authorizer. Never: says what is right.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api import create_acls, delete_acls, describe_acls
from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation, Pattern, Permission
from tests.raw_requests import Line

AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
}
OPEN: Final = AUTHORIZER | {"super.users": "User:ANONYMOUS"}
"""There are rules, and whoever comes stands above them."""
EVERYTHING: Final = {
    "resource_type_filter": Kind.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": Pattern.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


def rule(**changed: Any) -> dict[str, Any]:
    return {
        "resource_type": Kind.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": Pattern.LITERAL,
        "principal": "User:ANONYMOUS",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
        **changed,
    }


def created(line: Line, *rules: dict[str, Any], version: int = 3) -> list[ErrorCode]:
    reply = line.ask(create_acls.KEY, version, creations=rules)
    return [one.error_code for one in reply.results]


def deleted(line: Line, *filters: dict[str, Any], version: int = 3) -> Any:
    return line.ask(delete_acls.KEY, version, filters=filters).filter_results


def describe_reply(line: Line, version: int = 3, **changed: Any) -> Any:
    return line.ask(describe_acls.KEY, version, **EVERYTHING | changed)


def described(line: Line, version: int = 3, **changed: Any) -> list[tuple[str, int]]:
    reply = describe_reply(line, version, **changed)
    assert reply.error_code is ErrorCode.none, reply.error_message
    return [
        (resource.resource_name, acl.operation)
        for resource in reply.resources
        for acl in resource.acls
    ]
