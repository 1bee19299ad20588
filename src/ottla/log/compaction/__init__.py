"""Log compaction.

- `plan`                 which log to compact next, and up to which offset (pure)
- `cleaner`              rewrites closed segments so that each key keeps its newest record
- `batch_filter`         which records of a batch are kept
- `offset_map`           the newest offset of each key, in a fixed amount of memory
- `replacement_segment`  the segment being written, until it replaces the originals
"""
