"""Hand-written codecs: Produce requests without a copy, Produce and Fetch replies.

These three are most of what a broker reads and writes. kio would copy every record set out of a
Produce request and cannot leave room for a file in a Fetch reply. `benchmarks/wire.py` measures the
gain; the tests compare the bytes with kio's in every version.

- `produce`  the request, decoded in place, and its reply
- `fetch`    the reply, as parts with the records of files between them
- `fetch_response`  the reply, parsed in place by consumers and followers
- `parts`    the encoding of parts of both replies
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
