"""The index files of a segment.

- `sparse_index`  a sorted file of fixed-size entries; the newest are kept in memory
- `txn_index`     aborted transactions: `.txnindex`
"""
