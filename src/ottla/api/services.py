"""The ports that handlers may use: the one shared record, at most nine.

Owns no state. Each field is what one layer below offers; handlers ask for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Listeners
from ottla.controller.facade import Controller
from ottla.coordinator.group.service import Groups
from ottla.coordinator.txn.service import Transactions
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId
from ottla.replica.services import ReplicaServices


class Identity(NamedTuple):
    """Who this broker is, and in which cluster."""

    broker_id: BrokerId
    cluster_id: str


@dataclass(frozen=True, slots=True)
class Services:
    """What a broker offers its handlers."""

    identity: Identity
    clock: Clock
    config: DynamicConfig
    listeners: Listeners
    metadata: MetadataCache
    controller: Controller
    replicas: ReplicaServices
    groups: Groups
    txns: Transactions
