"""The cells of kcat, Debian's build of librdkafka: the only one here that knows GSSAPI."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from typing import Final

from tests.interop.security.cells import Access, Cell, Job, Outcome
from tests.interop.security.site import OPEN, USER
from tests.skips import skip_without

WAIT_S: Final = 60
_ERROR: Final = re.compile(r"(?:Local|Broker|error): [A-Z][\w ]+\w")


def run(jobs: Iterable[Job]) -> dict[Cell, Outcome]:
    if shutil.which("kcat") is None:
        skip_without("kcat is missing; as root: apt-get install kcat")
    return {job.cell: Outcome(produce(job), consume(job)) for job in jobs}


def produce(job: Job) -> str:
    done = _kcat(job.access, "-P", "-t", job.topic, stdin=job.value + "\n")
    return "ok" if done.returncode == 0 else _error(done)


def consume(job: Job) -> str:
    """kcat reads to the ends of all partitions, and stops."""
    more = ("-X", "auto.offset.reset=earliest", "-e", "-q")
    done = _kcat(job.access, *more, "-G", job.group, OPEN)
    return "ok" if job.value in done.stdout.splitlines() else _error(done)


def _kcat(access: Access, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.protocol,
        "ssl.ca.location": str(access.authority),
        "sasl.mechanisms": str(access.mechanism),
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": USER,
        "sasl.kerberos.keytab": str(access.keytab),
    }
    options = [word for pair in settings.items() for word in ("-X", "=".join(pair))]
    return subprocess.run(
        ["kcat", *options, *words], input=stdin, capture_output=True, text=True,
        timeout=WAIT_S, check=False,
    )  # fmt: skip


def _error(done: subprocess.CompletedProcess[str]) -> str:
    found = _ERROR.search(done.stderr)
    return found[0] if found else done.stderr.strip()
