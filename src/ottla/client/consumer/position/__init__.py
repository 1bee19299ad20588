"""Positions of assigned partitions.

- `partition_position`  one assigned partition: its position and what is known of its log (pure)
- `reset_policy`        `auto.offset.reset` (pure)
- `position_loop`       finds each partition its position: committed, reset, or validated
- `offset_lookup`       asks brokers for offsets: by timestamp, by leader epoch, by group
- `seeking`             seek, pause, resume, offset queries
"""
