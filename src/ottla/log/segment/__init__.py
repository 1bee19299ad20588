"""Segments: one `.log` file each, with its indexes.

- `segment`        one segment: append, read, truncate, close
- `segment_list`   the segments of a log, ordered by base offset
- `file_names`     the file names of a segment; renames and removes its files together
- `indexes`        a segment's offset and time index, opened and updated together
- `index_rebuild`  rebuilds indexes at startup, after truncation, after corruption
- `search`         finds a batch by offset or timestamp
- `rollover`       closes the active segment and creates the next
"""
