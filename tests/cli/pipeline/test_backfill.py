from __future__ import annotations

from pathlib import Path

import ottla
from ottla.testing import Broker
from tests.cli.conftest import make_topic
from tests.cli.ottla_program import Run


def test_a_dry_run_shows_the_offsets_and_keeps_nothing(
    run: Run, admin: ottla.Admin, cli_broker: Broker, tmp_path: Path
) -> None:
    servers, topic = cli_broker.bootstrap_servers, make_topic(admin)
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(5):
            producer.send(topic, b"x", partition=0, timestamp_ms=1_000 * number)
    path = tmp_path / "copy.yaml"
    path.write_text(f"""
name: copy
bootstrap: {servers}
checkpoint: {tmp_path / "checkpoints"}
sources: {{events: {{topic: {topic}}}}}
sinks:
  - {{name: out, from: events, topic: out}}
  - {{name: lake, from: events, parquet: {tmp_path / "lake"}}}
""")
    asked = ("pipeline", "backfill", str(path), "--from", "1970-01-01T00:00:02Z")
    refused = run(*asked, "--dry-run")
    assert refused.code != 0
    assert "sink lake: files cannot be written by a backfill" in refused.err
    rows = run(*asked, "--to", "4000", "--sink", "out", "--dry-run", "--json").json
    first = next(row for row in rows if row["partition"] == f"{topic}-0")
    assert (first["source"], first["from"], first["to"], first["records"]) == ("events", 2, 4, 2)
    shown = run(*asked, "--sink", "out", "--dry-run", "--id", "second")
    assert "backfill second: 3 records" in shown.out
    assert not (tmp_path / "checkpoints").exists()
