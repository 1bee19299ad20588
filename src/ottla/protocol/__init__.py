"""Bytes to typed values and back; no I/O, no asyncio, no clock.

- `records/`     record batches as they travel and as they lie on disk
- `wire`         a frame to the typed request of its version, and a reply's fields to a frame
- `schema`       the messages there are, as kio declares them, and what fields they have
- `guard`        no length in a message can lie: checked before kio decodes it
- `encode`       fields to the bytes of a message
- `interbroker`  the messages between brokers that kio does not carry (`interbroker_fields`)
- `hot/`         Produce requests without a copy, Produce and Fetch replies by hand
- `pieces`       large messages, written in pieces
"""
