"""Segments: one `.log` file each, with its indexes.

- `segment`        one segment: append, read, truncate, close; the names of its files
- `segment_list`   the segments of a log, ordered by base offset
- `indexes`        a segment's offset and time index, opened and updated together
- `index_rebuild`  rebuilds indexes from the batches
- `segment_end`    finds a segment's end and its newest batch, at startup and after truncation
- `search`         finds a batch by offset or timestamp
- `rollover`       when to roll; creates a segment, completes a closed one
"""
