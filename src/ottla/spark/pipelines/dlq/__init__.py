"""Dead letters: rejected rows with reason and origin, and their way back.

- `letters`   rejected rows as records of a dead-letter topic
- `replay`    sends letters back to where they came from, each once
- `positions` what has been replayed, kept in a compacted topic
"""
