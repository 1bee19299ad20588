"""The producer: records in, batches out, each record's outcome back.

- `sync`, `aio`     the two faces; `making` is where their options are checked
- `sending`         the quick way in that both have
- `core`            the producer itself: parts, and what waits
- `batch`           one batch from its first record to its outcome; `delivery` is one record's
- `arrow`           whole tables into batches; `table` is their outcome
- `waiting`         waiting for outcomes on the event loop
- `queues`          batches by partition: what both sides share
- `intake`          the callers' side: records into batches
- `accumulator`     the sender's side: when batches are ready, how they are drained
- `memory`          `buffer.memory` and who waits for it (pure)
- `compression`     how much fits into a batch that will be compressed (pure)
- `encoding`        a batch to bytes
- `sender`          requests and replies; `chores` is what it has done on the side
- `produce`         the bytes of the Produce request (pure)
- `outcomes`        retry, split, expire or give up
- `sequences`       the numbers of idempotence (pure); `numbering` says when they are ready
- `transaction`     phases of a transaction (pure); `transactions` what a user does with them
- `coordination`    requests to coordinators; `ending` ends a transaction that another prepared
"""
