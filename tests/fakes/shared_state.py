"""Shared state of the cluster over a store in memory."""

from __future__ import annotations

from random import Random

from ottla.api.services import SharedState
from ottla.config.dynamic import DynamicConfig
from ottla.model.ids import BrokerId
from ottla.security.authorizer import Authorizer
from ottla.security.delegation_tokens import DelegationTokens
from ottla.security.quotas.client_quotas import ClientQuotas
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.config_store import ConfigStore
from ottla.shared_state.producer_ids import ProducerIds
from ottla.shared_state.quota_store import QuotaStore
from ottla.shared_state.token_store import TokenStore
from ottla.store.port import Store
from tests.fakes.virtual_loop import LoopClock


def shared_state(store: Store, config: DynamicConfig, broker_id: BrokerId) -> SharedState:
    secret = config.current.token_secret
    configs, quotas = ConfigStore(store, config, broker_id), ClientQuotas()
    configs.quotas = QuotaStore(store, quotas)
    tokens = TokenStore(store, DelegationTokens(secret, LoopClock()), Random(0).randbytes)
    return SharedState(
        configs, AclStore(store, Authorizer()), ProducerIds(store, broker_id), quotas, tokens
    )
