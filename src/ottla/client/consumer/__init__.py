"""The consumer: from brokers' bytes to a user's records.

- `assignors`    who of a group reads what
"""
