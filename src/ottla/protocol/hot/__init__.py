"""Hand-written codecs: Produce requests without a copy, Produce and Fetch replies, and the Fetch
requests of followers.

These are most of what a broker and its clients read and write. kio would copy every record
set and cannot leave room for a file in a Fetch reply. `benchmarks/wire.py` measures the gain; the
tests compare the bytes with kio's in every version.

- `produce_request`  decoded in place, encoded with record sets unchanged
- `produce_reply`    encoded
- `fetch`            the reply, encoded as parts with the records of files between them
- `fetch_request`    of a follower, encoded
- `fetch_response`   the reply, decoded in place by consumers and followers
- `parts`            the encoding of parts of these messages
"""

from ottla.protocol.hot.fetch import FetchedPartition, Sized, fetch_reply, fetch_reply_in_slices
from ottla.protocol.hot.parts import Endpoint
from ottla.protocol.hot.produce_reply import ProducedPartition, produce_reply
from ottla.protocol.hot.produce_request import ProduceRequest, decode_produce

__all__ = [
    "Endpoint",
    "FetchedPartition",
    "ProduceRequest",
    "ProducedPartition",
    "Sized",
    "decode_produce",
    "fetch_reply",
    "fetch_reply_in_slices",
    "produce_reply",
]
