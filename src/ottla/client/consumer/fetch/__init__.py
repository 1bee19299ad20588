"""Fetching: from Fetch requests to records.

- `fetcher`              the requests in flight to each broker
- `partition_selection`  which partitions the next request contains (pure)
- `session`              incremental fetch sessions (pure)
- `partition_responses`  handles the response for one partition: records or an error
- `chunk`, `buffer`      fetched bytes that were not read yet
- `record_decoder`       batches to records (pure)
- `arrow`                batches to Arrow
- `delivery`             takes records out of the buffer at the end of a poll
"""
