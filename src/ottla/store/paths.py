"""Kafka's own paths in the tree, so that its tools find the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote

from ottla.model.ids import BrokerId, TopicPartition

ACLS: Final = "/kafka-acl"
ACLS_PREFIXED: Final = "/kafka-acl-extended/prefixed"
ACL_CHANGES: Final = "/kafka-acl-changes"
ACL_CHANGES_PREFIXED: Final = "/kafka-acl-extended-changes"
ADMIN: Final = "/admin"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
CLUSTER_ID: Final = "/cluster/id"
CONFIG_BROKERS: Final = "/config/brokers"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_GROUPS: Final = "/config/groups"  # not Kafka's: it has group settings only in KRaft mode
CONFIG_TOPICS: Final = "/config/topics"
CONFIG_CLIENTS: Final = "/config/clients"
CONFIG_IPS: Final = "/config/ips"
CONFIG_USERS: Final = "/config/users"
SCRAM_SECRET: Final = "/cluster/scram_secret"  # not Kafka's: derives salts of unknown users
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
DELEGATION_TOKEN: Final = "/delegation_token"
DELETE_TOPICS: Final = "/admin/delete_topics"
ISR_CHANGES: Final = "/isr_change_notification"
LOG_DIRS: Final = "/brokers/log_dirs"  # not Kafka's
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
TOKENS: Final = "/delegation_token/tokens"
TOKEN_CHANGES: Final = "/delegation_token/token_changes"
TOPICS: Final = "/brokers/topics"

ACL_CHANGE_PREFIX: Final = "acl_changes_"
ISR_CHANGE_PREFIX: Final = "isr_change_"
LOG_DIR_EVENT_PREFIX: Final = "log_dir_event_"
CONFIG_CHANGE_PREFIX: Final = "config_change_"
TOKEN_CHANGE_PREFIX: Final = "token_change_"
DEFAULT_ENTITY: Final = "<default>"
_NOT_ALLOWED: Final = re.compile("[%/\x00-\x1f\x7f-\x9f\ue000-\uf8ff\ufff0-\uffff]")

# Created before the first broker registers, parents first.
ROOTS: Final = (
    "/brokers",
    BROKER_IDS,
    TOPICS,
    BROKER_SEQUENCE,
    LOG_DIRS,
    "/cluster",
    "/config",
    CONFIG_BROKERS,
    CONFIG_CHANGES,
    CONFIG_GROUPS,
    CONFIG_TOPICS,
    CONFIG_CLIENTS,
    CONFIG_IPS,
    CONFIG_USERS,
    ADMIN,
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
)


def broker(broker_id: BrokerId) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def log_dirs(broker_id: BrokerId) -> str:
    return f"{LOG_DIRS}/{broker_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition(tp: TopicPartition) -> str:
    return f"{TOPICS}/{tp.topic}/partitions/{tp.partition}"


def partition_state(tp: TopicPartition) -> str:
    return f"{TOPICS}/{tp.topic}/partitions/{tp.partition}/state"


def delete_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def token(id: str) -> str:
    return f"{TOKENS}/{id}"


def topic_config(name: str) -> str:
    return f"{CONFIG_TOPICS}/{name}"


def group_config(name: str) -> str:
    return f"{CONFIG_GROUPS}/{quoted(name)}"


def user_config(name: str) -> str:
    """As Kafka writes it: the name is encoded as in a URL."""
    return f"{CONFIG_USERS}/{encoded_user(name)}"


def encoded_user(name: str) -> str:
    """Kafka's encoding: that of a form in a URL, but with %20 and %2A."""
    encoded = quote_plus(name, safe="-._*").replace("+", "%20").replace("*", "%2A")
    return encoded.replace("~", "%7E")


def broker_config(broker_id: BrokerId | None) -> str:
    """The settings of one broker, or of all of them."""
    return f"{CONFIG_BROKERS}/{DEFAULT_ENTITY if broker_id is None else broker_id}"


def quoted(name: str) -> str:
    """A user's name as one step of a path: ZooKeeper accepts only part of Unicode."""
    step = _NOT_ALLOWED.sub(lambda match: quote(match[0], safe=""), name)
    return step.replace(".", "%2E") if step in (".", "..") else step


def plain(step: str) -> str:
    """The inverse of `quoted` and of `encoded_user`."""
    return unquote(step)


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def name(path: str) -> str:
    return path.rpartition("/")[2]


def ancestors(path: str) -> Iterator[str]:
    """Every parent of `path` but the root, outermost first."""
    end = path.find("/", 1)
    while end != -1:
        yield path[:end]
        end = path.find("/", end + 1)
