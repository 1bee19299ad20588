"""The permissions that a request needs as a whole.

Owns who counts as a broker, how a declaration states permissions (`Api.needs`), and the error code
for each kind of resource. An API whose topics, groups or keys are authorized one by one checks each
of them itself, with `Context.allows`. Never decides by ACLs: the authorizer does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.schema import KioMessage
from ottla.security.acl import CLUSTER_NAME, Kind, Operation
from ottla.security.authorizer import Authorizer, Requester

if TYPE_CHECKING:
    from ottla.api.services import Services
    from ottla.net.request_slot import Peer

REFUSALS: Final = {
    Kind.TOPIC: ErrorCode.topic_authorization_failed,
    Kind.GROUP: ErrorCode.group_authorization_failed,
    Kind.CLUSTER: ErrorCode.cluster_authorization_failed,
    Kind.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
}


class Need(NamedTuple):
    """An operation on the resource that a field of the request names, or on the cluster."""

    operation: Operation
    kind: Kind
    field: str | None = None

    def name(self, request: KioMessage) -> str | None:
        """None if the request has no such resource."""
        return CLUSTER_NAME if self.field is None else getattr(request, self.field)


def on_cluster(operation: Operation) -> tuple[Need]:
    return (Need(operation, Kind.CLUSTER),)


def on_group(operation: Operation) -> tuple[Need]:
    return (Need(operation, Kind.GROUP, "group_id"),)


WRITE_TRANSACTIONS: Final = Need(Operation.WRITE, Kind.TRANSACTIONAL_ID, "transactional_id")


def check(
    authorizer: Authorizer, peer: Requester, needs: Iterable[Need], request: KioMessage
) -> None:
    """KafkaError if the peer lacks one of the needed permissions."""
    if not authorizer.in_force:
        return
    for need in needs:
        name = need.name(request)
        if name is not None:
            require(authorizer, peer, need.operation, need.kind, name)


def require(
    authorizer: Authorizer, peer: Requester, operation: Operation, kind: Kind, name: str
) -> None:
    if not authorizer.allows(peer, operation, kind, name):
        raise KafkaError(REFUSALS[kind])


def uses_broker_listener(peer: Peer, services: Services) -> bool:
    """Whether the peer may be a broker of this cluster, judged by the listener it came through.

    A broker without ZooKeeper is alone: no connection comes from another broker. With an authorizer
    it may come through any listener, because its principal is what counts: while brokers change to
    another listener, one by one, each is talked to on both.
    """
    if services.config.current.zookeeper_connect is None:
        return False
    if services.authorizer.in_force:
        return True
    listeners = services.broker.listeners
    return peer.listener in (listeners.inter_broker, listeners.control_plane)


def acts_as_broker(peer: Peer, services: Services) -> bool:
    """Whether the peer may use the APIs between brokers: the one place that decides it.

    By its listener and, with an authorizer, by the permission ClusterAction.
    """
    if peer.is_broker:  # this process
        return True
    if not uses_broker_listener(peer, services):
        return False
    authorizer = services.authorizer
    return not authorizer.in_force or authorizer.allows_on_cluster(peer, Operation.CLUSTER_ACTION)
