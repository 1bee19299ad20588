"""The partitions hosted by this broker: leading, following, appending, reading.

May import `log`, `metadata`, `net`, `security`, `store`, `delay`, `config`, `protocol` and `model`;
never `api` or the controller.

- `leader`                   follower positions, in-sync replicas and high watermark (pure)
- `partition`                one hosted partition: log, role, high watermark; its only writer
- `hosted_partitions`        the hosted partitions, and listeners for their changes
- `append`                   produce: append, then wait as acks requires
- `transaction_verification` which transactional batches the coordinator must verify first (pure)
- `read`                     fetch: read, or wait until enough data is there
- `partition_fetch`          one partition of a fetch: the request and its result
- `fetch_sessions`           incremental fetch sessions
- `delete_records`           advances a log's start offset on all replicas
- `transitions`              performs LeaderAndIsr and StopReplica
- `retries/`                 tries again to open or delete logs after a lack of descriptors, memory
- `refusals`                 whether the log refused a record set, or something before it
- `removed_files_loop`       detects files removed while the broker runs
- `internal_append`          batches written by the broker itself
- `commit_waiter`            waits until such batches are committed
- `flush_loop`               flushes that acknowledgements wait for
- `fetch/`                   fetches served here: options, waits, changes of a session, throttles
- `fetcher/`                 followers: copies partitions from the brokers that lead them
- `isr_loop`                 changes of the in-sync set: proposed, committed
- `isr_sender`               sends proposed in-sync sets to the controller
- `maintenance_loop`         retention, checkpoints, flushes, expiration
- `compaction_loop`          compaction, the dirtiest log first
- `move_loop`                moves between log directories
- `metrics`                  gauges computed when they are read
- `topic_metrics`            bytes and messages per topic
- `producer_id_limit`        how many producer ids partitions may remember
- `environment`              what all partitions share: broker id, clock, thread pool
- `services`                 the parts that API handlers use
"""
