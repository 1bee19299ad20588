"""The first request of a version imports what reads and writes that version, and no other.

An import takes some milliseconds of the event loop, and memory for good. A handler that asks for a
field which its version lacks has other versions imported, one after the other, until one has it.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

SCRIPT: Final = """
import re, sys
from benchmarks.stalls import SETTINGS, prepare, warm
from ottla.api import APIS
from ottla.testing import Broker
from tests.raw_requests import Line

def loaded():
    request = re.compile(r"kio\\.schema\\.\\w+\\.v\\d+\\.request")
    return {name for name in sys.modules if request.fullmatch(name)}

with Broker(SETTINGS) as broker, Line(broker.bootstrap_servers, 60.0) as line:
    size = prepare(line, 1, 1, 1)
    before = loaded()
    warm(line, size)
    print(len(loaded() - before), len(APIS))
"""


def test_the_first_request_of_each_api_imports_hardly_more_than_its_own_version() -> None:
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True
    )
    versions, apis = map(int, said.stdout.split())
    assert versions < apis + 3
