"""Bytes to typed values and back; no I/O, no asyncio, no clock.

- `records/`      record batches, as sent and as stored
- `wire`          a frame to the typed request of its version, and a reply's fields to a frame
- `schema`        the messages of the protocol, as kio declares them
- `length_check`  checks every length in a message before kio decodes it
- `unknown_tags`  removes tagged fields that kio does not know
- `encode`        fields to the bytes of a message
- `chunked_encoding`  large messages, encoded in slices
- `interbroker`   the messages between brokers that kio does not have (`interbroker_fields`)
- `principals`    a principal as bytes, in a forwarded request
- `hot/`          hand-written codecs of Produce and Fetch
"""
