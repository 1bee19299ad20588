"""The log directories of one broker.

- `log_directories`        every log directory, and the partitions in each
- `directory`              one log directory: lock, identity, checkpoints, clean-shutdown marker
- `names`                  names of partition directories, and their suffixes
- `meta_properties`        the `meta.properties` file
- `partition_metadata`     the `partition.metadata` file: a partition's topic id
- `checkpoint_file`        the format of offset checkpoint files
- `directory_checkpoints`  the four checkpoints of a directory
- `replica_moves`          moves a partition to another log directory
- `inspection`             lists the contents of a data directory without changing it
"""
