"""`ottla log <verb>`: look into the files of a data directory.

- `dump`  what a segment's files say, in the words of Kafka's own dump tool
"""
