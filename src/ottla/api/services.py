"""The ports that handlers may use: the one shared record, at most eight.

Owns no state. Each field is what one layer below offers; handlers ask for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import Listeners
from ottla.controller.facade import Controller
from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId
from ottla.replica.services import ReplicaServices


@dataclass(frozen=True, slots=True)
class Services:
    """What a broker offers its handlers."""

    broker_id: BrokerId
    cluster_id: str
    clock: Clock
    config: DynamicConfig
    listeners: Listeners
    metadata: MetadataCache
    controller: Controller
    replicas: ReplicaServices
