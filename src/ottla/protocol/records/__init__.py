"""Record batches: the one format that sockets, disks and replicas share.

- `batch`        whole batches: header, checksum, walking, building
- `header`       the 61 bytes in front of a batch
- `record`       the records inside one, in plain Python
- `small_batch`  small batches of a broker's own, built quickly
- `columns`      batches as columns, by native kernels (needs the extra `arrow`; import it only
                 where it is used)
- `legacy`       the two older formats, read only
- `compression`  the codecs by name; `codecs`, loaded by it when needed, the four themselves, with
                 an upper bound on what they may inflate to
- `crc`          the checksum of a batch
- `control`      the records that end a transaction
"""
