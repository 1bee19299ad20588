"""`ottla offsets <verb>`: where partitions begin, end, and were at a time.

- `list`  one offset of each partition
"""
