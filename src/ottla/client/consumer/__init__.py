"""The consumer: `ottla.Consumer` and `ottla.aio.Consumer`.

Both stand on one `core`, which runs on an event loop. Decisions are in the modules without a loop;
the loops send requests and hand their results to a user's poll.

- `sync`, `aio`        the public classes
- `base`               what both have in common
- `builder`            builds the parts of a consumer from its options
- `core`               the parts, and what a poll waits for
- `callback_thread`    runs user callbacks on the user's thread
- `poll_gate`          work that may only run inside a poll
- `subscribing`        subscribe, assign, unsubscribe, close
- `subscription`       topics, a pattern, or partitions assigned by hand (pure)
- `metadata_watch`     follows metadata: new topics, partitions, leaders
- `rebalance_listener` the rebalance listener
- `interceptors`       consumer interceptors
- `record`             the record a user gets
- `errors`             exceptions of the consumer
- `assignors/`         assignment strategies (pure)
- `group/`             membership, rebalances, commits
- `fetch/`             fetching, buffering, decoding
- `position/`          positions, resets, seeks, offset look-ups
"""
