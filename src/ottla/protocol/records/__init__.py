"""Record batches: the format used on the wire, on disk and between replicas.

- `batch`        whole batches: header, checksum, walking, building
- `header`       the 61 bytes in front of a batch
- `record`       the records inside one, in plain Python
- `columns`      batches as columns, by native kernels (needs the extra `arrow`; import it only
                 where it is used)
- `legacy`       the two older formats, read only
- `compression`  the codecs by name; it loads `codecs`, the four codecs with a bound on the
                 decompressed size, when needed
- `crc`          the checksum of a batch
- `control`      the records that end a transaction
"""
