"""Apache Kafka's own jars, fetched once from Maven Central and kept in a cache.

Owns: the cache folder (`OTTLA_CACHE`, or `~/.cache/ottla`), one folder of jars for each kind
below, one folder of classes for each Java program of ours, and how Java is started with them.
Never: names a registry; where artifacts come from is the machine's own Maven configuration.

After the first fetch nothing here needs the network, or Maven. The tests and the benchmarks
use it to hold Ottla against the real thing.

    python -m tools.kafka_cache                   fetches every kind
    python -m tools.kafka_cache kafka-topics …    runs one of Kafka's tools
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

KAFKA: Final = os.environ.get("OTTLA_KAFKA_VERSION", "4.3.1")
KAFKA_3: Final = os.environ.get("OTTLA_KAFKA_3_VERSION", "3.9.2")
# The newest on Maven Central when this was written; Spark 4.3 runs it.
SPARK_CONNECTOR: Final = os.environ.get("OTTLA_SPARK_CONNECTOR_VERSION", "4.2.0")


class Missing(Exception):
    """Something the machine lacks; the message says what, and how to get it."""


class Artifact(NamedTuple):
    group: str
    name: str
    version: str


class Alone(Artifact):
    """One without what it depends on: something else brings that along."""


def _kafka(version: str, *names: str) -> tuple[Artifact, ...]:
    return tuple(Artifact("org.apache.kafka", name, version) for name in names)


# One logger for every kind: it writes to stderr, and only what is worth reading.
_LOGGER: Final = Artifact("org.slf4j", "slf4j-simple", "1.7.36")

KINDS: Final[Mapping[str, tuple[Artifact, ...]]] = {
    "server": (*_kafka(KAFKA, "kafka_2.13", "kafka-tools"), _LOGGER),
    "server-3.9": (*_kafka(KAFKA_3, "kafka_2.13", "kafka-tools"), _LOGGER),
    "clients": (*_kafka(KAFKA, "kafka-clients"), _LOGGER),
    "clients-3.9": (*_kafka(KAFKA_3, "kafka-clients"), _LOGGER),
    # Spark's own connector, to be held against ours. The rest of Spark comes with PySpark.
    "spark-connector": (
        Alone("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_CONNECTOR),
        # Reads settings and fetches Kerberos tokens; it has not changed since.
        Alone("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        Alone("org.apache.kafka", "kafka-clients", KAFKA_3),
        Alone("org.apache.commons", "commons-pool2", "2.12.0"),
    ),
}

# Kafka Connect comes with the tools, is two thirds of the download, and nothing here uses it.
_UNUSED: Final = ("connect-runtime",)

TOOLS: Final[Mapping[str, str]] = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
# Tools that lived elsewhere in 3.9.
_TOOLS_3: Final = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
}

# The options of Kafka's own start script, and quick starts for what lives for a second.
SHORT_LIVED: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx512m")
_QUIET: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    # It would complain, for every client, that no one reads its metrics over JMX.
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.utils.AppInfoParser=error",
)


def cache_dir() -> Path:
    named = os.environ.get("OTTLA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "ottla"


def classpath(kind: str) -> str:
    """Every jar of a kind as Java wants it, fetched now if they never were."""
    return f"{jars(kind)}/*"


def jars(kind: str) -> Path:
    """The folder that holds a kind's jars."""
    artifacts = KINDS[kind]
    wanted = hashlib.sha256(repr((artifacts, _UNUSED)).encode()).hexdigest()[:8]
    folder = cache_dir() / "jars" / f"{kind}-{artifacts[0].version}-{wanted}"
    if folder.is_dir():
        return folder
    with _only_one(folder.parent):
        if not folder.is_dir():  # someone else may have fetched while we waited
            _fetch(kind, folder)
    return folder


def compiled(kind: str, sources: Sequence[Path]) -> str:
    """The classpath of a Java program of ours, compiled against a kind's jars when it changed."""
    base = classpath(kind)
    digest = hashlib.sha256(base.encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = cache_dir() / "classes" / digest.hexdigest()[:16]
    with _only_one(folder.parent):
        if not folder.is_dir():
            making = folder.with_suffix(".making")
            command = [program("javac"), "-nowarn", "-cp", base, "-d", str(making)]
            subprocess.run([*command, *map(str, sources)], check=True)
            making.rename(folder)
    return f"{folder}:{base}"


def java(path: str, main: str, *args: str, options: Sequence[str] = SHORT_LIVED) -> list[str]:
    """The command that runs one Java class."""
    return [program("java"), *_QUIET, *options, "-cp", path, main, *args]


def tool(name: str, *args: str, kind: str = "server") -> list[str]:
    """The command that runs one of Kafka's command-line tools."""
    main = TOOLS[name] if kind == "server" else _TOOLS_3.get(name, TOOLS[name])
    return java(classpath(kind), main, *args)


def run_tool(
    name: str, *args: str, stdin: str = "", kind: str = "server", timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs one of Kafka's tools to its end; the caller judges the exit code."""
    command = tool(name, *args, kind=kind)
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout_s
    )


def program(command: str) -> str:
    found = shutil.which(command)
    if found is None:
        package = "maven" if command == "mvn" else "default-jdk-headless"
        raise Missing(f"{command} is missing; as root: apt-get install {package}")
    return found


def main(args: Sequence[str]) -> int:
    try:
        if args:
            return subprocess.run(tool(args[0], *args[1:]), check=False).returncode
        for kind in KINDS:
            print(jars(kind))
    except KeyError:
        print(f"{args[0]}: expected one of {', '.join(TOOLS)}", file=sys.stderr)
        return 2
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def pom(artifacts: Sequence[Artifact]) -> str:
    """A Maven project that depends on these artifacts and is nothing else."""
    dependencies = "\n".join(
        f"    <dependency><groupId>{artifact.group}</groupId>"
        f"<artifactId>{artifact.name}</artifactId>"
        f"<version>{artifact.version}</version><exclusions>{_excluded(artifact)}</exclusions>"
        "</dependency>"
        for artifact in artifacts
    )
    return (
        "<project>\n  <modelVersion>4.0.0</modelVersion>\n"
        "  <groupId>ottla</groupId><artifactId>cache</artifactId><version>1</version>\n"
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</project>\n"
    )


def _excluded(artifact: Artifact) -> str:
    names = ("*",) if isinstance(artifact, Alone) else _UNUSED
    return "".join(
        f"<exclusion><groupId>*</groupId><artifactId>{name}</artifactId></exclusion>"
        for name in names
    )


def _fetch(kind: str, folder: Path) -> None:
    maven = program("mvn")
    making = folder.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    (making / "pom.xml").write_text(pom(KINDS[kind]))
    _say(f"fetching {', '.join(f'{a.name} {a.version}' for a in KINDS[kind])} with Maven")
    command = [maven, "--batch-mode", "--file", str(making / "pom.xml")]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={making / 'jars'}"]
    command += ["-DincludeScope=runtime"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as maven_run:
        assert maven_run.stdout is not None
        said = _follow(maven_run.stdout)
    if maven_run.returncode != 0:
        shutil.rmtree(making)
        raise Missing(f"Maven could not fetch {kind}:\n" + "\n".join(said[-15:]))
    (making / "jars").rename(folder)
    shutil.rmtree(making)
    _say(f"{len(list(folder.iterdir()))} jars in {folder}")


def _follow(lines: Iterable[str]) -> list[str]:
    """What Maven said; while it speaks, how far it is."""
    said: list[str] = []
    downloaded = 0
    for line in lines:
        said.append(line.rstrip())
        if "Downloaded" in line and ".jar" in line:
            downloaded += 1
            if downloaded % 10 == 0:
                _say(f"{downloaded} jars downloaded")
    return said


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """One process at a time works in a folder of the cache."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(f"kafka-cache: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
