"""The cluster metadata cached by this broker, as the controller last sent it.

May import `model`. Written by UpdateMetadata alone.

- `image`           one immutable snapshot: brokers, topics by name and id, partitions
- `cache`           holds the newest image; the only place where it is replaced
"""
