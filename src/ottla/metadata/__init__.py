"""What this broker believes about the cluster, as the controller last told it.

May import `model`. Written by UpdateMetadata alone; read by everybody.

- `image`   one immutable picture: brokers, topics by name and id, partitions
- `derived` what readers made of topics that are still the same
- `cache`   holds the newest picture; the one place where it is replaced
"""
