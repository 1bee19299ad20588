"""Decode mutated frames in a process of its own: `python -m tests.fuzz.decoding SEED COUNT`.

Ends with code 0 when each was decoded or refused with `Disconnect`, and says how many of each, and
the most memory it took.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from ottla.api import BY_KEY
from ottla.model.errors import Disconnect
from ottla.protocol import wire
from ottla.protocol.hot import decode_produce
from tests.fuzz.mutations import mutated
from tests.fuzz.requests import Requests

PRODUCE = 0


def decodes(body: memoryview) -> bool:
    """As dispatch does it: header, version, body."""
    try:
        call = wire.parse_call(body)
        api = BY_KEY.get(call.key)
        if api is None or call.version not in api.versions:
            return False
        decode_produce(call, body) if call.key == PRODUCE else wire.decode(call, body)
    except Disconnect:
        return False
    return True


def main(seed: int, count: int) -> None:
    dice = Random(seed)
    requests = Requests(dice)
    decoded = 0
    other = requests.any()
    for _ in range(count):
        frame = requests.any()
        assert decodes(memoryview(frame)[4:]), frame.hex()
        decoded += decodes(memoryview(mutated(dice, frame, other))[4:])
        other = frame
    print(decoded, count - decoded, peak_kib())


def peak_kib() -> int:
    """Of this program alone: getrusage may say the peak of the process it was forked from."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
