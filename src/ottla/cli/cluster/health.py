"""`ottla cluster health`: whether everything can be read and written."""

from __future__ import annotations

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.diagnosis.checks import AVAILABILITY, Severity, examined
from ottla.cli.diagnosis.facts import availability
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap

COLUMNS = ("severity", "subject", "what", "what to do")


def health(*, as_json: AsJson = False, bootstrap: Bootstrap = DEFAULT_SERVER) -> int:
    """Check that every partition can be read and written; exit code 1 if not.

    Examples:
      ottla cluster health
      ottla cluster health --json
    """
    with admin_connection(bootstrap) as admin:
        facts = availability(admin)
    found = examined(facts, AVAILABILITY)
    if found or as_json:
        rows = [(one.severity.value, one.subject, one.what, one.do) for one in found]
        show(Table("health", COLUMNS, rows), as_json=as_json)
    else:
        partitions = sum(len(topic.partitions) for topic in facts.topics)
        print(
            f"healthy: {len(facts.cluster.brokers)} brokers, {len(facts.topics)} topics, "
            f"{partitions} partitions"
        )
    return 1 if any(one.severity is Severity.BAD for one in found) else 0
