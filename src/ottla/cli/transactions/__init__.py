"""`ottla transactions <verb>`: what is open, what hangs, ending it.

- `list`          transactional ids and their states
- `describe`      how they stand, and which partitions they touch
- `find_hanging`  open in a partition, though no coordinator knows of it
- `abort`         ends transactions: by id, of a Spark query, or one that hangs
- `hanging`       telling those that hang from those that go on
"""
