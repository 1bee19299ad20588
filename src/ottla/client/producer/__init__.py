"""The producer: `ottla.Producer` and `ottla.aio.Producer`.

- `sync`, `aio`      the public classes
- `options`          checks what a user passes to a producer
- `core`             the producer itself: its parts, and what waits
- `send_path`        the fast path of `send`, shared by `sync` and `aio`
- `delivery`         what `send` returns: a record's result
- `table_delivery`   what `send_arrow` returns: the results of a table
- `buffer/`          records into batches: memory, queues, encoding
- `sender/`          batches into requests: sequences, retries, results
- `transactions/`    the state of a transaction, and its coordinator requests
"""
