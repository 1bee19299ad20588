"""The cells of Kafka's Java client, of one version, in one virtual machine."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.interop.security.cells import Access, Cell, Job, Outcome
from tests.interop.security.site import BEARER_MODULE, OPEN, Site, java_options, properties
from tools import kafka_cache

KINDS: Final[Mapping[str, str]] = {"java-3.9": "clients-3.9", "java-4": "clients"}
"""The kinds of jars by the name of the client."""
AT_ONCE: Final = 8
WAIT_S: Final = 240
_SOURCE: Final = Path(__file__).parent.parent / "java" / "SecurityDriver.java"


def run(kind: str, site: Site, jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    listed = list(jobs)
    lines = "".join(
        "\t".join((str(number), job.topic, OPEN, job.group, job.value, encoded(job.access))) + "\n"
        for number, job in enumerate(listed)
    )
    path = kafka_cache.compiled(kind, [_SOURCE])
    options = (*java_options(site.folder, site.realm), *kafka_cache.SHORT_LIVED)
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    command = kafka_cache.java(path, "SecurityDriver", str(AT_ONCE), options=(*options, quiet))
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = (line.split("\t") for line in done.stdout.splitlines())
    return {listed[int(number)].cell: Outcome(*outcome) for number, *outcome in answers}


def encoded(access: Access) -> str:
    texts = {"bootstrap.servers": access.bootstrap, **properties(access)}
    if access.bearer is not None:
        texts |= {
            "sasl.jaas.config": f'{BEARER_MODULE} required token="{access.bearer.read_text()}";',
            "sasl.login.callback.handler.class": "SecurityDriver$Handler",
        }
    text = "".join(f"{name}={value}\n" for name, value in texts.items())
    return base64.b64encode(text.encode()).decode()
