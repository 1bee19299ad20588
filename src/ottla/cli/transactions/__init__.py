"""`ottla transactions <verb>`: what is open, what hangs, ending it.

- `show`          `list`: transactional ids and their states; `describe`: their partitions too
- `find_hanging`  open in a partition, though no coordinator knows of it
- `abort`         ends transactions: by id, of a Spark query, or one that hangs
- `hanging`       telling those that hang from those that go on
"""
