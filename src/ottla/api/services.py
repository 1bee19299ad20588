"""The services that handlers may use: one shared record, at most ten fields.

Owns no state. Each field is the interface of one layer below; handlers use nothing else.
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
from ottla.security.quotas.client_quotas import ClientQuotas
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.producer_ids import ProducerIds
from ottla.shared_state.token_store import TokenStore


class BrokerContext(NamedTuple):
    """The broker's id, its cluster, its listeners and its clock."""

    broker_id: BrokerId
    cluster_id: str
    listeners: Listeners
    clock: Clock


class SharedState(NamedTuple):
    """State of the cluster in the metadata store, which any broker may read and change."""

    configs: ConfigStore
    acls: AclStore
    producer_ids: ProducerIds
    quotas: ClientQuotas
    tokens: TokenStore


@dataclass(frozen=True, slots=True)
class Services:
    """The services of a broker."""

    broker: BrokerContext
    config: DynamicConfig
    authorizer: Authorizer
    metadata: MetadataCache
    controller: Controller
    shared: SharedState
    replicas: ReplicaServices
    groups: Groups
    txns: Transactions
