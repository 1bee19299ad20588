"""The services that handlers may use: one shared record, at most ten fields.

Owns no state. Each field is the interface of one layer below; handlers use nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Listeners
from ottla.controller.controller import Controller
from ottla.coordinator.group.service import Groups
from ottla.coordinator.txn.service import Transactions
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId
from ottla.replica.services import ReplicaServices
from ottla.security.authorizer import Authorizer
from ottla.security.quotas.client_quotas import ClientQuotas


class Identity(NamedTuple):
    """The broker's id, its cluster and its listeners."""

    broker_id: BrokerId
    cluster_id: str
    listeners: Listeners


@dataclass(frozen=True, slots=True)
class Services:
    """The services of a broker."""

    identity: Identity
    clock: Clock
    config: DynamicConfig
    authorizer: Authorizer
    metadata: MetadataCache
    controller: Controller
    replicas: ReplicaServices
    groups: Groups
    txns: Transactions
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
