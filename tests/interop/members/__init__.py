"""Members of groups as programs, one for each client library, that say what they saw.

A host is a process with any number of members in it, told on stdin who joins and who leaves; a
process that is killed takes its members with it. Everything a member saw goes to a file, in the
words of `ottla.testing.history`.

- `hosting`            what all Python hosts share: commands, members as threads, the file
- `confluent_host`, `kafka_python_host`, `aiokafka_host`  one client library each
- `../java/GroupHost.java`  the same in Java
"""
