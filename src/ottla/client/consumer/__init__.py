"""The consumer: `ottla.Consumer` and `ottla.aio.Consumer`.

Both use one `core`, which runs on an event loop. Decisions are in the pure modules; the loops send
requests and pass their results to the user's poll.

- `sync`, `aio`        the public classes
- `base`               what both have in common
- `builder`            builds the parts of a consumer from its options
- `core`               the parts of a consumer, and the wait of a poll
- `callback_thread`    runs user callbacks on the user's thread
- `poll_gate`          work that may only run inside a poll
- `subscribing`        subscribe, assign, unsubscribe, close
- `subscription`       topics, a pattern, or partitions assigned by hand (pure)
- `metadata_watch`     follows metadata: new topics, partitions, leaders
- `rebalance_listener` the rebalance listener
- `interceptors`       consumer interceptors
- `record`             the record a user receives
- `errors`             exceptions of the consumer
- `assignors/`         assignment strategies (pure)
- `group/`             membership, rebalances, commits
- `fetch/`             fetching, buffering, decoding
- `position/`          positions, resets, seeks, offset look-ups
"""
