"""The ports that handlers may use: the one shared record, at most nine.

Owns no state. Each field is what one layer below offers; handlers ask for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
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


class Identity(NamedTuple):
    """Who this broker is, in which cluster, and where it listens."""

    broker_id: BrokerId
    cluster_id: str
    listeners: Listeners


@dataclass(frozen=True, slots=True)
class Services:
    """What a broker offers its handlers."""

    identity: Identity
    clock: Clock
    config: DynamicConfig
    authorizer: Authorizer
    metadata: MetadataCache
    controller: Controller
    replicas: ReplicaServices
    groups: Groups
    txns: Transactions
