"""The APIs this broker serves: one file each, listed here in the order of their keys.

Dispatch, the ApiVersions reply, metrics labels and `docs/compat.md` come from `APIS`; a test ties
it to the folder. Handlers translate requests into calls of the layers below and never hold state.

- `api`               what a declaration is
- `services`          what handlers may use
- `dispatch`          from a frame to a reply
- `operations`        what a client may do, as replies tell it
- `config_resources`  what has settings, and where they are stored
- `loggers`           levels of this process's loggers
- `interbroker`       what only brokers say to each other
"""

from collections.abc import Mapping
from typing import Final

from ottla.api.alter_configs import API as ALTER_CONFIGS
from ottla.api.alter_partition_reassignments import API as ALTER_PARTITION_REASSIGNMENTS
from ottla.api.alter_replica_log_dirs import API as ALTER_REPLICA_LOG_DIRS
from ottla.api.api import Api
from ottla.api.api_versions import API as API_VERSIONS
from ottla.api.create_partitions import API as CREATE_PARTITIONS
from ottla.api.create_topics import API as CREATE_TOPICS
from ottla.api.delete_records import API as DELETE_RECORDS
from ottla.api.delete_topics import API as DELETE_TOPICS
from ottla.api.describe_cluster import API as DESCRIBE_CLUSTER
from ottla.api.describe_configs import API as DESCRIBE_CONFIGS
from ottla.api.describe_log_dirs import API as DESCRIBE_LOG_DIRS
from ottla.api.describe_topic_partitions import API as DESCRIBE_TOPIC_PARTITIONS
from ottla.api.elect_leaders import API as ELECT_LEADERS
from ottla.api.fetch import API as FETCH
from ottla.api.incremental_alter_configs import API as INCREMENTAL_ALTER_CONFIGS
from ottla.api.init_producer_id import API as INIT_PRODUCER_ID
from ottla.api.interbroker.controlled_shutdown import API as CONTROLLED_SHUTDOWN
from ottla.api.interbroker.leader_and_isr import API as LEADER_AND_ISR
from ottla.api.interbroker.stop_replica import API as STOP_REPLICA
from ottla.api.interbroker.update_metadata import API as UPDATE_METADATA
from ottla.api.list_config_resources import API as LIST_CONFIG_RESOURCES
from ottla.api.list_offsets import API as LIST_OFFSETS
from ottla.api.list_partition_reassignments import API as LIST_PARTITION_REASSIGNMENTS
from ottla.api.metadata import API as METADATA
from ottla.api.offset_for_leader_epoch import API as OFFSET_FOR_LEADER_EPOCH
from ottla.api.produce import API as PRODUCE

APIS: Final[tuple[Api, ...]] = (
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    CONTROLLED_SHUTDOWN,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DELETE_RECORDS,
    INIT_PRODUCER_ID,
    OFFSET_FOR_LEADER_EPOCH,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    ALTER_REPLICA_LOG_DIRS,
    DESCRIBE_LOG_DIRS,
    CREATE_PARTITIONS,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    LIST_PARTITION_REASSIGNMENTS,
    DESCRIBE_CLUSTER,
    LIST_CONFIG_RESOURCES,
    DESCRIBE_TOPIC_PARTITIONS,
)

BY_KEY: Final[Mapping[int, Api]] = {api.key: api for api in APIS}
