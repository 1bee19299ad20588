"""Batches into requests, and replies into results.

- `sender`            the sender's loop
- `produce_request`   the Produce request and its reply (pure)
- `batch_results`     retry, split, expire or fail a batch
- `request_metrics`   counts of requests, and the latency of brokers (pure)
- `sequences`         sequence numbers of the idempotent producer (pure)
- `batch_numbering`   assigns producer id, epoch and sequence to a batch
- `background_tasks`  look-ups, connections and ids requested while the sender goes on
"""
