"""One partition's data on one disk, in Kafka's own file formats. Synchronous, no asyncio.

May import `protocol`, `config` and `model`. All disk access goes through `files`; the file formats
are described in docs/formats/.

- `log`                 one partition's log: append, read, truncate, flush, close
- `results`             the results of an append and of a read, and fatal errors
- `validate`            checks a record set before a leader appends it (pure)
- `record_errors`       which records of a set are refused, and why (pure)
- `follower_append`     appends batches received from a leader
- `timestamp_lookup`    offsets by timestamp
- `aborted_transactions` aborted transactions, and their indexes
- `flush`               flushing and truncating, split so that only fsync runs off the loop
- `leader_epochs`       the leader epoch cache and its checkpoint file
- `retention`           which segments retention deletes (pure)
- `segment_deletion`    removes segments from a log
- `partition_directory` a partition's directory, and which of its entries are not durable yet
- `stored_batch`        batches as stored in a `.log` file
- `files`               the only module that opens, writes, flushes, renames or removes files
- `file_slice`          a range of a file, sent with sendfile
- `io_uring`            many files synced by one system call, on processors the loop can spare
- `segment/`            segments: files, indexes, search, rolling
- `index/`              the offset, time and transaction index files
- `producers/`          producer state: sequences, epochs, open transactions, snapshots
- `compaction/`         log compaction: planning, cleaning
- `directories/`        the broker's log directories, their metadata and checkpoints
- `recovery/`           loading logs at startup, recovery after an unclean shutdown
- `dump/`               prints the contents of a partition's files
"""
