"""`ottla metadata <verb>`: the metadata store of a stopped broker.

- `move`       from the embedded store to ZooKeeper, and back
- `tree_copy`  reads, writes and deletes a whole tree of nodes
"""
