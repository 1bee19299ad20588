"""`ottla cluster describe`, `health`: the brokers, and whether everything can be used."""

from __future__ import annotations

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.diagnosis.checks import AVAILABILITY, Finding, Severity, examine, group_findings
from ottla.cli.diagnosis.facts import availability
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap

BROKERS = ("broker", "address", "rack", "controller", "directories", "bytes", "usable bytes")


def describe(*, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """Show the brokers, their disks and the finalized features.

    Examples:
      ottla cluster describe
      ottla cluster describe --json
    """
    with admin_connection(bootstrap) as admin:
        cluster = admin.describe_cluster()
        features = admin.describe_features()
        disks = admin.describe_log_dirs().succeeded
    brokers = [
        (
            broker.id,
            broker.address,
            broker.rack,
            broker.id == cluster.controller,
            [each.path for each in disks.get(broker.id, ())],
            sum(
                each.size_bytes
                for dir in disks.get(broker.id, ())
                for each in dir.replicas.values()
            ),
            sum(max(each.usable_bytes, 0) for each in disks.get(broker.id, ())),
        )
        for broker in cluster.brokers
    ]
    levels = [
        (name, feature.finalized, *feature.supported) for name, feature in sorted(features.items())
    ]
    show(
        Table("cluster", ("id", "controller"), [(cluster.id, cluster.controller)]),
        Table("brokers", BROKERS, brokers, ("rack", "usable bytes", "controller")),
        Table("features", ("feature", "level", "from", "to"), levels),
        as_json=as_json,
    )
    return 0


COLUMNS = ("severity", "subject", "what", "what to do")


def row_of(finding: Finding) -> tuple[str, str, str, str]:
    return finding.severity.value, finding.subject, finding.what, finding.do


def health(*, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """Check that every partition can be read and written; exit code 1 if not.

    Examples:
      ottla cluster health
      ottla cluster health --json
    """
    with admin_connection(bootstrap) as admin:
        facts = availability(admin)
    findings = examine(facts, AVAILABILITY)
    if findings or as_json:
        rows = [row_of(finding) for finding in (findings if as_json else group_findings(findings))]
        show(Table("health", COLUMNS, rows), as_json=as_json)
    else:
        counts = {
            "broker": len(facts.cluster.brokers),
            "topic": len(facts.topics),
            "partition": sum(len(topic.partitions) for topic in facts.topics),
        }
        parts = (f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())
        print(f"healthy: {', '.join(parts)}")
    return 1 if any(one.severity is Severity.BAD for one in findings) else 0
