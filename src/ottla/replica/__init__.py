"""The partitions this broker holds: leading, following, appending, reading.

May import `log`, `metadata`, `store`, `delay`, `config`, `protocol` and `model`; never `api` or the
controller.

- `leader`          pure: what a leader concludes from its followers' fetches
- `partition`       one hosted partition: log, role, high watermark; its only writer
- `hosted`          which partitions are here, and who hears of their changes
- `append`          produce: append, then wait as acks asks
- `refusals`        who refused a record set
- `express_append`  the same in one step, where there is nothing to wait for
- `txn_gate`        pure: which transactional batches must be admitted first; who admits them
- `read`            fetch: read, or wait until there is something
- `wanted`          what a fetch asks of a partition, and what it gets
- `fetch_sessions`  incremental fetch
- `delete_records`  move a log's start, wait until all replicas have
- `transitions`     LeaderAndIsr and StopReplica, carried out
- `own_append`      batches that the broker makes itself; `commits`: who waits for them
- `flush_loop`      flushes that acknowledgements wait for
- `isr_loop`        in-sync sets, proposed and committed
- `isr_writer`      the same, written to the store
- `care_loop`       retention, checkpoints, flushes, expiry
- `compaction_loop` compaction, the dirtiest log first
- `move_loop`       partitions on their way to another log directory
- `removed_files_loop` files that were removed under the broker
- `gauges`          numbers worked out when somebody asks
- `traffic`         bytes and messages by topic
- `surroundings`    what all partitions share
- `services`        the parts that handlers may use
"""
