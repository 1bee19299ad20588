"""The index files of a segment.

- `sparse_index`  a sorted file of fixed-size entries; the newest are kept in memory
- `offset_index`  offset to file position: `.index`
- `time_index`    timestamp to offset: `.timeindex`
- `txn_index`     aborted transactions: `.txnindex`
"""
