"""Record batches as columns, and back: native kernels (Numba), one call for millions of records.

    decode.decode_batches(buffer, *, want=("offset", "timestamp", "timestamp_type", "key", "value"),
                          start_offset=0, end_offset=…, start_time=…, end_time=…, aborted=(),
                          check_crc=True, max_bytes=…)
        -> Decoded(batch: pyarrow.RecordBatch, rows, next_offset, consumed, leader_epoch, aborted,
                   more)
    record_lists.decode_records(buffer, *, the same without `want`)
        -> Records(offsets, timestamps, timestamp_types, leader_epochs, keys, values, headers: lists
                   of equal length; then as Decoded)
    encode.encode_batches(key, value, headers=None, timestamps=None, *, now_ms=-1, partitions=None,
                          codec=Codec.NONE, level=None, max_batch_bytes=1 MiB, finish=True)
        -> list[Encoded(data: writable memoryview, records, partition, max_timestamp,
                        plain_bytes, section_checksum)]
        (Arrow arrays, or lists of bytes | None; timestamps may be an array("q") too, which is the
        cheapest; lists without headers that fit one batch take a faster path)
    partition.partition_column(keys, partitions, *, unkeyed=-1), murmur2_column(keys) -> int32 array
    batch.stamp(batch, *, producer_id, producer_epoch, base_sequence, transactional=False,
                checksum=compute_crc)

- `native`     compiles and caches kernels
- `arrays`     allocates their arrays
- `checksum`   CRC-32C inside kernels
- `read_kernels`  the kernels that read batches
- `walk_kernel`  the kernel that walks over ordinary batches by their headers
- `validate`   one batch checked by a broker
- `select`     which batches of a buffer are read
- `gather`     batches to arrays
- `decode`     those arrays as Arrow columns
- `record_lists` those arrays as Python lists
- `write_kernels` the kernels that write batches
- `rows`       Arrow arrays and lists in the form those kernels take
- `encode`     rows to batches
- `partition`  keys to partitions
- `warm`       loads every kernel before it is needed

Needs the extra `arrow`. Importing this package loads Numba, but neither pyarrow nor any kernel:
those are compiled when first called, which takes seconds once per machine, and cached on disk.
"""

from ottla.protocol.records.columns.validate import validate_records, warm_up

__all__ = ["validate_records", "warm_up"]
