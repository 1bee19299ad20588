"""What a cluster says of itself: versions, brokers, coordinators, logs, features."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from tests.interop.answers.scenario import ALL, Bytes, Scenario, ask, scenario, since, topic

_HEADER: Final = Struct(">hhih")


def _request(key: int, version: int, body: bytes = b"") -> bytes:
    frame = _HEADER.pack(key, version, 7, -1) + body
    return len(frame).to_bytes(4, "big") + frame


def _dir(path: str, name: str, partition: int) -> dict[str, Any]:
    return {"path": path, "topics": [{"name": name, "partitions": [partition]}]}


def _versions(name: str, version: str) -> dict[str, Any]:
    return {"client_software_name": name, "client_software_version": version}


SCENARIOS: Final[tuple[Scenario, ...]] = (
    scenario("versions offered", ask("ApiVersions", ALL, **_versions("answers", "1.0"))),
    scenario(
        "versions asked for by odd software",
        ask("ApiVersions", since(3), **_versions("", "1.0")),
        ask("ApiVersions", since(3), **_versions("answers", "")),
        ask("ApiVersions", since(3), **_versions("a b", "1.0")),
        ask("ApiVersions", since(3), **_versions("a\nb", "1.0")),
        ask("ApiVersions", since(3), **_versions("-a", "1.0")),
        ask("ApiVersions", since(3), **_versions("a.-b", "1.0-SNAPSHOT")),
        ask("ApiVersions", since(3), **_versions("a", "1.0-")),
    ),
    scenario("versions in a version that nobody has", ask("ApiVersions", 77)),
    scenario("an API that nobody has", Bytes("key 999", _request(999, 0))),
    scenario("an API with a negative key", Bytes("key -1", _request(-1, 0))),
    scenario("a version that nobody has", Bytes("Metadata v77", _request(3, 77))),
    scenario("a negative version", Bytes("Metadata v-1", _request(3, -1))),
    scenario("a version that was removed", Bytes("Produce v2", _request(0, 2))),
    scenario("a body that is cut short", Bytes("Metadata v1", _request(3, 1, b"\0\0"))),
    scenario("a body with bytes too many", Bytes("Metadata v1", _request(3, 1, b"\0\0\0\0tail"))),
    scenario("a header that is cut short", Bytes("4 bytes", b"\0\0\0\4\0\3\0\1")),
    scenario("a frame of no bytes", Bytes("empty", b"\0\0\0\0")),
    scenario("a frame of negative size", Bytes("negative", b"\xff\xff\xff\xff")),
    scenario("a frame that is too large", Bytes("large", b"\x7f\xff\xff\xff")),
    scenario("an array of 2^31-1", Bytes("Metadata v1", _request(3, 1, b"\x7f\xff\xff\xff"))),
    scenario(
        "null where there is no null", Bytes("Metadata v0", _request(3, 0, b"\xff\xff\xff\xff"))
    ),
    scenario(
        "authentication where none is asked for",
        *(
            ask("SaslHandshake", ALL, mechanism=mechanism)
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "GSSAPI", "no such", "")
        ),
        *(ask("SaslAuthenticate", ALL, auth_bytes=token) for token in (b"\0a\0b", b"", b"n,,")),
    ),
    scenario(
        "the cluster described",
        ask("DescribeCluster", ALL, endpoint_type=1),
        ask("DescribeCluster", ALL, endpoint_type=1, include_cluster_authorized_operations=True),
        ask("DescribeCluster", since(1), endpoint_type=2),
        ask("DescribeCluster", since(1), endpoint_type=7),
        ask("DescribeCluster", since(2), endpoint_type=1, include_fenced_brokers=True),
    ),
    scenario(
        "coordinators found",
        *(ask("FindCoordinator", version, key="$g") for version in range(4)),
        *(ask("FindCoordinator", version, key="$tx", key_type=1) for version in range(1, 4)),
        ask("FindCoordinator", since(4), key_type=0, coordinator_keys=["$g", "$h", "$g"]),
        ask("FindCoordinator", since(4), key_type=1, coordinator_keys=["$tx"]),
        ask("FindCoordinator", since(4), key_type=0, coordinator_keys=[]),
        ask("FindCoordinator", since(4), key_type=0, coordinator_keys=[""]),
        ask("FindCoordinator", since(4), key_type=1, coordinator_keys=[""]),
        ask("FindCoordinator", 3, key="", key_type=0),
        ask("FindCoordinator", 3, key="$g", key_type=9),
        ask("FindCoordinator", since(4), key_type=9, coordinator_keys=["$g"]),
        ask("FindCoordinator", since(6), key_type=2, coordinator_keys=["not:a:share:key"]),
        ask("FindCoordinator", 5, key_type=2, coordinator_keys=["not:a:share:key"]),
    ),
    scenario(
        "log directories described",
        topic("$t", 2),
        ask("DescribeLogDirs", ALL, topics=[{"topic": "$t", "partitions": [0, 1]}]),
        ask("DescribeLogDirs", ALL, topics=[{"topic": "$t", "partitions": [7]}]),
        ask("DescribeLogDirs", ALL, topics=[{"topic": "$nothing", "partitions": [0]}]),
        ask("DescribeLogDirs", ALL, topics=[]),
    ),
    scenario(
        "replicas moved between directories that are not there",
        topic("$t"),
        *(
            ask("AlterReplicaLogDirs", ALL, dirs=[_dir(path, name, 0)])
            for path in ("/no/such/directory", "relative")
            for name in ("$t", "$nothing")
        ),
        ask("AlterReplicaLogDirs", ALL, dirs=[_dir("/no/such/directory", "$t", 9)]),
        ask("AlterReplicaLogDirs", ALL, dirs=[]),
    ),
    scenario(
        "features changed",
        *(
            ask("UpdateFeatures", version, timeout=1000, feature_updates=[])
            for version in (0, 1, 2)
        ),
        ask(
            "UpdateFeatures",
            1,
            feature_updates=[{"feature": "no.such", "max_version_level": 1, "upgrade_type": 1}],
        ),
    ),
    scenario(
        "the quorum described",
        ask("DescribeQuorum", 0, topics=[]),
    ),
    scenario(
        "telemetry",
        ask("GetTelemetrySubscriptions", 0, client_instance_id=None),
    ),
)
