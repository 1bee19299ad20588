"""Bytes to typed values and back; no I/O, no asyncio, no clock.

- `records/`     record batches as they travel and as they lie on disk
- `wire`         a frame to the typed request of its version, and a reply's fields to a frame
- `interbroker`  the messages between brokers that kio does not carry
- `hot`          Produce requests without a copy, Produce and Fetch replies by hand
"""
