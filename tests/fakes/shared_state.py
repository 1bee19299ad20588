"""Shared state of the cluster over a store in memory."""

from __future__ import annotations

from ottla.api.services import SharedState
from ottla.config.dynamic import DynamicConfig
from ottla.model.ids import BrokerId
from ottla.security.authorizer import Authorizer
from ottla.security.quotas.client_quotas import ClientQuotas
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.producer_ids import ProducerIds
from ottla.shared_state.quota_store import QuotaStore
from ottla.store.port import Store


def shared_state(store: Store, config: DynamicConfig, broker_id: BrokerId) -> SharedState:
    configs, quotas = ConfigStore(store, config, broker_id), ClientQuotas()
    configs.quotas = QuotaStore(store, quotas)
    return SharedState(
        configs, AclStore(store, Authorizer()), ProducerIds(store, broker_id), quotas
    )
