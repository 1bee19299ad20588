"""Produce requests without a copy, Produce and Fetch replies by hand.

These three are most of what a broker reads and writes. kio would copy every record set out of a
Produce request and could not leave a hole for a file in a Fetch reply. `benchmarks/wire.py` says
what this is worth; the tests hold it byte for byte to kio in every version.

- `produce`  the request, decoded in place, and its reply
- `fetch`    the reply, as parts between which the records of files go
- `shape`    requests of a producer that repeats itself, read in one step
- `parts`    what both replies are made of
"""

from ottla.protocol.hot.fetch import FetchedPartition, Sized, fetch_reply
from ottla.protocol.hot.parts import Endpoint
from ottla.protocol.hot.produce import (
    ProducedPartition,
    ProduceRequest,
    decode_produce,
    produce_reply,
)

__all__ = [
    "Endpoint",
    "FetchedPartition",
    "ProduceRequest",
    "ProducedPartition",
    "Sized",
    "decode_produce",
    "fetch_reply",
    "produce_reply",
]
