"""Differences that are meant, each with its reason.

Owns: the list. A difference that is not in it fails the suite, and so does an entry that no reply
needs any more. A difference in the words of an error is none here: those are counted apart.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from tests.interop.answers.compare import Difference


class Meant(NamedTuple):
    """Fields that may differ: of an API, at a path (with `*`), in some scenarios (with `*`)."""

    api: str
    path: str
    reason: str
    scenario: str = "*"

    def covers(self, scenario: str, api: str, found: Difference) -> bool:
        return (
            self.api == api
            and fnmatchcase(found.path, self.path)
            and fnmatchcase(scenario, self.scenario)
        )


KRAFT: Final = "part of KRaft or of a release's own upgrade path; there is no such thing here"
NOT_YET: Final = "not offered yet: the connection is closed, as for any API that is not served"
NO_TELEMETRY: Final = (
    "settings of client metrics (resource type 16) are not offered: INVALID_REQUEST, as for any "
    "unknown type"
)
TIERED: Final = "tiered storage is not offered, and so its settings are not"
OWN: Final = "a setting of our own"
FAILS: Final = "Apache Kafka fails inside (UNKNOWN_SERVER_ERROR); we say what is wrong"
FORMATTED: Final = "Apache Kafka writes this default down as a setting when it is formatted"
EMPTY_GROUP: Final = "the empty group id is refused to everybody (24), not to members alone"
ALONE: Final = "without ZooKeeper there is one broker: requests of other brokers are refused"

NOT_OFFERED: Final = (
    "ShareGroupDescribe", "StreamsGroupDescribe", "GetTelemetrySubscriptions",
)  # fmt: skip
OF_KRAFT: Final = ("UpdateFeatures", "DescribeQuorum")

MEANT: Final[tuple[Meant, ...]] = (
    *(Meant(api, "*", NOT_YET) for api in NOT_OFFERED),
    *(Meant(api, "*", KRAFT) for api in OF_KRAFT),
    Meant("ApiVersions", "api_keys/22/max_version", "we offer two-phase commit (KIP-939)"),
    *(Meant("ApiVersions", f"api_keys/{key}", KRAFT) for key in (55, 57, 64, 80, 81)),
    Meant("ApiVersions", "api_keys/7[67]", "share groups are not offered"),
    Meant("ApiVersions", "api_keys/7[89]", "share groups are not offered"),
    Meant("ApiVersions", "api_keys/8[3-7]", "share groups are not offered"),
    Meant("ApiVersions", "api_keys/9[0-2]", "share groups are not offered"),
    Meant("ApiVersions", "api_keys/8[89]", "streams groups are not offered"),
    Meant("ApiVersions", "*features*", KRAFT),
    # Topics
    *(
        Meant(api, f"*/configs/{name}*", TIERED)
        for api in ("CreateTopics", "DescribeConfigs")
        for name in ("local.retention", "remote.")
    ),
    *(
        Meant(api, f"*/configs/{name}", OWN)
        for api in ("CreateTopics", "DescribeConfigs")
        for name in ("flush.before.ack", "record.validation")
    ),
    *(
        Meant(api, "*/configs/min.insync.replicas/*", FORMATTED)
        for api in ("CreateTopics", "DescribeConfigs")
    ),
    Meant("CreateTopics", "*", TIERED, "create with local retention above retention"),
    Meant("CreateTopics", "topics/__cluster_metadata/*", KRAFT),
    Meant(
        "CreateTopics",
        "topics/*/topic_id",
        "Apache Kafka makes up an id even if the topic is only validated, not made",
        "create what is only validated",
    ),
    Meant(
        "CreateTopics",
        "*/configs/retention.ms/value",
        "numbers are read back without blanks around them",
        "create with a number with blanks",
    ),
    Meant("Metadata", "*", FAILS, "metadata by neither name nor id"),
    Meant("DescribeTopicPartitions", "*", FAILS, "partitions of odd names described"),
    Meant(
        "ElectLeaders",
        "error_code",
        "an unknown kind of election is refused even when it is asked for nothing",
        "leaders elected",
    ),
    # Records
    *(
        Meant("Produce", "*/error_code", FAILS, f"produce *{what}*")
        for what in ("unknown codec", "codec that it was not packed with", "damaged")
    ),
    Meant("Produce", "*/log_start_offset", FAILS, "produce an unknown codec"),
    *(
        Meant(
            "Produce",
            "*/log_append_time",
            "a repeat is told with the time of its batch; we say that the topic does not stamp",
            scenario,
        )
        for scenario in ("sequences", "produce a producer id without an epoch")
    ),
    Meant(
        "Produce",
        "*/log_start_offset",
        "an old epoch is refused by the log here, by the coordinator there",
        "a transaction of the second kind, *",
    ),
    Meant(
        "Produce",
        "responses/*+",
        "of a partition that is named twice Apache Kafka forgets the first batch; we append both",
        "a partition named twice",
    ),
    *(
        Meant(
            "Fetch",
            f"*/{field}",
            "gzip names another operating system in its header",
            "produce records to a topic with its own codec",
        )
        for field in ("crc", "records")
    ),
    Meant("Fetch", "*", FAILS, "fetch with negative limits"),
    Meant("ListOffsets", "*", FAILS, "offsets at an unknown isolation level"),
    # Groups
    *(
        Meant(api, "*", EMPTY_GROUP, scenario)
        for api, scenario in (
            ("OffsetCommit", "a group without a name"),
            ("OffsetFetch", "a group without a name"),
            ("DescribeGroups", "a group without a name"),
            ("DeleteGroups", "a group without a name"),
            ("AddOffsetsToTxn", "a transaction of a group without a name"),
            ("ConsumerGroupHeartbeat", "consumer: first with an empty group id"),
        )
    ),
    Meant(
        "DescribeGroups",
        "*/member_assignment",
        "what was assigned is shown while it holds, not during a rebalance",
        "two members",
    ),
    Meant(
        "ConsumerGroupHeartbeat",
        "member_epoch",
        "groups begin with epoch 0 here, with 1 in 4.3",
        "consumer: first with an empty subscription",
    ),
    Meant(
        "ConsumerGroupDescribe",
        "*/assignment/topic_partitions/*",
        "partitions that a member shall give back are no longer shown as assigned to it",
        "consumer: two members",
    ),
    *(
        Meant(
            "JoinGroup",
            field,
            "what a member brings along is looked at before an id is given to it",
            "consumer: a member's life",
        )
        for field in ("error_code", "member_id")
    ),
    # Between brokers
    Meant("Fetch", "responses/*", ALONE, "fetch as a replica"),
    *(
        Meant("AddPartitionsToTxn", path, ALONE)
        for path in ("error_code", "results_by_transaction/*")
    ),
    # Settings
    Meant("DescribeConfigs", "*", NO_TELEMETRY, "settings of telemetry"),
    Meant("IncrementalAlterConfigs", "*/error_code", FAILS, "alter a topic with an unknown *"),
    Meant(
        "DescribeAcls",
        "*",
        "Apache Kafka closes the connection of who asks for an unknown kind of resource",
    ),
)

# With an Apache Kafka 3.9, for what a controller and brokers say to each other.
MEANT_39: Final[tuple[Meant, ...]] = (
    Meant("ControlledShutdown", "error_code", FAILS, "brokers shut down that are not there"),
)


def meant(scenario: str, api: str, found: Difference) -> Meant | None:
    """The entry that explains a difference."""
    return next((one for one in (*MEANT, *MEANT_39) if one.covers(scenario, api, found)), None)
