"""One partition's data on one disk: Kafka's own files, byte for byte. Synchronous, no asyncio.

May import `protocol`, `config` and `model`. All disk access goes through `files`; what the files
look like is in docs/formats/.

- `log`              the face: append, read, truncate, flush, close; `answers`: what it says
- `validate`         what a record set must be before a leader appends it (pure);
                     `record_errors`: which of its records a topic refuses, and why (pure)
- `plain_append`     the same and the append in one pass, for batches with nothing special
- `producers`        sequences, epochs and open transactions; `producer_history`,
                     `producer_snapshot`: the same on disk; `recall`: what a snapshot leaves out
- `rolling`          when a segment is full (pure); `retention`: when one is too old (pure)
- `follower_append`, `lookup`, `rollover`, `truncation`, `retirement`, `flush`   what the log does
                     that takes more than a few lines
- `segments`, `segment`, `stored`   the batches in their files; of a segment `segment_search` finds
                     one, `segment_upkeep` keeps true what is derived, `segment_files` names it
- `recent_batches`, `segment_indexes`: `offset_index`, `time_index` (over `sparse_index`)   what
                     finds them; `txn_index`: what readers of committed data skip
- `partition_folder` where they lie, and what is not durable yet
- `epochs`, `checkpoint`, `partition_metadata`, `meta_properties`   the small text files
- `loader`           how a folder becomes a log again: `leftovers` of a crash undone or completed,
                     `recovery` after an unclean stop
- `cleaner`          compaction (with `compaction`, `survivors`, `offset_map`,
                     `transaction_trail`, `replacement`)
- `directories`      the log directories of a broker: each a `directory` (with `directory_names`),
                     their `checkpoints`, `loading` at the start, `moves` between them, and
                     `describe` for whoever asks
- `dump`             what the files say, for people (with `dump_log`, `dump_indexes`, `dump_rows`)
- `survey`           what a directory that Kafka wrote holds, for `ottla adopt`
- `files`, `slices`  the disk; `ring`: many files synced by the kernel alone, on the `processors`
                     that the loop can spare
"""
