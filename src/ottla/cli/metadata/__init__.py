"""`ottla metadata <verb>`: the metadata of a broker or a cluster.

- `backup`     `export` to a file, `import` from it
- `move`       from the embedded store to ZooKeeper, and back
- `tree_copy`  reads, writes and deletes a whole tree of nodes
"""
