"""SASL: who a client is, shown by a mechanism. Pure but for key sets, JAAS files and Kerberos.

- `exchange`     what a mechanism is, on the server's and on the client's side
- `plain`        PLAIN
- `scram`        SCRAM-SHA-256 and SCRAM-SHA-512: messages, both sides, all users' credentials
- `oauthbearer`  OAUTHBEARER: messages of both sides
- `kerberos`     GSSAPI: both sides, keys and tickets
- `kerberos_names`  which user a Kerberos principal is
- `tokens`       JSON web tokens: which are accepted
- `key_sets`     the keys that tokens are signed with, and the only addresses they are read from
- `jaas`         JAAS lines and files, for Kafka's own login modules only
- `server`       the mechanisms of one listener
- `client`       the login of a client
- `login_requests`  the requests of that login

Nothing is ever loaded by a name that a setting contains.
"""
