"""The APIs this broker serves: one file each, listed here in the order of their keys.

Dispatch, the ApiVersions reply, metrics labels and `docs/compat.md` come from `APIS`; a test ties
it to the folder. Handlers translate requests into calls of the layers below and never hold state.

- `api`               the declaration of an API
- `services`          the services that handlers may use
- `dispatch`          from a frame to a reply
- `handling`          calls a handler; every failure becomes a refusal
- `fast_path`         Produce requests that repeat the connection's last one
- `throttling`        records usage for quotas, and adds throttle times to replies
- `current_leaders`   the new leader in replies of a broker that no longer leads (KIP-951)
- `quota_entities`    entities with quotas in requests and replies
- `requested_partitions`  the partitions that a request names, read in slices
- `token_requests`    what the APIs of delegation tokens have in common
- `login`             the login of a connection on a SASL listener
- `audit_log`         a line for each administrative request
- `authorise`         the permissions that a request needs
- `acl_rules`         ACLs in requests and replies
- `operations`        authorized operations in replies
- `config_resources`  resources with settings, and where those are stored
- `loggers`           log levels of this process
- `interbroker`       APIs between brokers
"""

from collections.abc import Mapping
from typing import Final

from ottla.api.add_offsets_to_txn import API as ADD_OFFSETS_TO_TXN
from ottla.api.add_partitions_to_txn import API as ADD_PARTITIONS_TO_TXN
from ottla.api.alter_client_quotas import API as ALTER_CLIENT_QUOTAS
from ottla.api.alter_configs import API as ALTER_CONFIGS
from ottla.api.alter_partition_reassignments import API as ALTER_PARTITION_REASSIGNMENTS
from ottla.api.alter_replica_log_dirs import API as ALTER_REPLICA_LOG_DIRS
from ottla.api.alter_user_scram_credentials import API as ALTER_USER_SCRAM_CREDENTIALS
from ottla.api.api import Api
from ottla.api.api_versions import API as API_VERSIONS
from ottla.api.consumer_group_describe import API as CONSUMER_GROUP_DESCRIBE
from ottla.api.consumer_group_heartbeat import API as CONSUMER_GROUP_HEARTBEAT
from ottla.api.create_acls import API as CREATE_ACLS
from ottla.api.create_delegation_token import API as CREATE_DELEGATION_TOKEN
from ottla.api.create_partitions import API as CREATE_PARTITIONS
from ottla.api.create_topics import API as CREATE_TOPICS
from ottla.api.delete_acls import API as DELETE_ACLS
from ottla.api.delete_groups import API as DELETE_GROUPS
from ottla.api.delete_records import API as DELETE_RECORDS
from ottla.api.delete_topics import API as DELETE_TOPICS
from ottla.api.describe_acls import API as DESCRIBE_ACLS
from ottla.api.describe_client_quotas import API as DESCRIBE_CLIENT_QUOTAS
from ottla.api.describe_cluster import API as DESCRIBE_CLUSTER
from ottla.api.describe_configs import API as DESCRIBE_CONFIGS
from ottla.api.describe_delegation_token import API as DESCRIBE_DELEGATION_TOKEN
from ottla.api.describe_groups import API as DESCRIBE_GROUPS
from ottla.api.describe_log_dirs import API as DESCRIBE_LOG_DIRS
from ottla.api.describe_producers import API as DESCRIBE_PRODUCERS
from ottla.api.describe_topic_partitions import API as DESCRIBE_TOPIC_PARTITIONS
from ottla.api.describe_transactions import API as DESCRIBE_TRANSACTIONS
from ottla.api.describe_user_scram_credentials import API as DESCRIBE_USER_SCRAM_CREDENTIALS
from ottla.api.elect_leaders import API as ELECT_LEADERS
from ottla.api.end_txn import API as END_TXN
from ottla.api.expire_delegation_token import API as EXPIRE_DELEGATION_TOKEN
from ottla.api.fetch import API as FETCH
from ottla.api.find_coordinator import API as FIND_COORDINATOR
from ottla.api.heartbeat import API as HEARTBEAT
from ottla.api.incremental_alter_configs import API as INCREMENTAL_ALTER_CONFIGS
from ottla.api.init_producer_id import API as INIT_PRODUCER_ID
from ottla.api.interbroker.alter_partition import API as ALTER_PARTITION
from ottla.api.interbroker.controlled_shutdown import API as CONTROLLED_SHUTDOWN
from ottla.api.interbroker.envelope import API as ENVELOPE
from ottla.api.interbroker.leader_and_isr import API as LEADER_AND_ISR
from ottla.api.interbroker.stop_replica import API as STOP_REPLICA
from ottla.api.interbroker.update_metadata import API as UPDATE_METADATA
from ottla.api.join_group import API as JOIN_GROUP
from ottla.api.leave_group import API as LEAVE_GROUP
from ottla.api.list_config_resources import API as LIST_CONFIG_RESOURCES
from ottla.api.list_groups import API as LIST_GROUPS
from ottla.api.list_offsets import API as LIST_OFFSETS
from ottla.api.list_partition_reassignments import API as LIST_PARTITION_REASSIGNMENTS
from ottla.api.list_transactions import API as LIST_TRANSACTIONS
from ottla.api.metadata import API as METADATA
from ottla.api.offset_commit import API as OFFSET_COMMIT
from ottla.api.offset_delete import API as OFFSET_DELETE
from ottla.api.offset_fetch import API as OFFSET_FETCH
from ottla.api.offset_for_leader_epoch import API as OFFSET_FOR_LEADER_EPOCH
from ottla.api.produce import API as PRODUCE
from ottla.api.renew_delegation_token import API as RENEW_DELEGATION_TOKEN
from ottla.api.sasl_authenticate import API as SASL_AUTHENTICATE
from ottla.api.sasl_handshake import API as SASL_HANDSHAKE
from ottla.api.sync_group import API as SYNC_GROUP
from ottla.api.txn_offset_commit import API as TXN_OFFSET_COMMIT
from ottla.api.write_txn_markers import API as WRITE_TXN_MARKERS

APIS: Final[tuple[Api, ...]] = (
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    CONTROLLED_SHUTDOWN,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    SASL_HANDSHAKE,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DELETE_RECORDS,
    INIT_PRODUCER_ID,
    OFFSET_FOR_LEADER_EPOCH,
    ADD_PARTITIONS_TO_TXN,
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    WRITE_TXN_MARKERS,
    TXN_OFFSET_COMMIT,
    DESCRIBE_ACLS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    ALTER_REPLICA_LOG_DIRS,
    DESCRIBE_LOG_DIRS,
    SASL_AUTHENTICATE,
    CREATE_PARTITIONS,
    CREATE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    DELETE_GROUPS,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    OFFSET_DELETE,
    DESCRIBE_CLIENT_QUOTAS,
    ALTER_CLIENT_QUOTAS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ALTER_USER_SCRAM_CREDENTIALS,
    ALTER_PARTITION,
    ENVELOPE,
    DESCRIBE_CLUSTER,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    CONSUMER_GROUP_HEARTBEAT,
    CONSUMER_GROUP_DESCRIBE,
    LIST_CONFIG_RESOURCES,
    DESCRIBE_TOPIC_PARTITIONS,
)

BY_KEY: Final[Mapping[int, Api]] = {api.key: api for api in APIS}
