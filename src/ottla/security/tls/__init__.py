"""Certificates and keys: read from Kafka's settings, made into contexts of OpenSSL.

- `stores`     key stores and trust stores: PEM, PKCS12, JKS, recognised by their content
- `jks`        Java's old key store format (pure)
- `der`        the few elements of DER that certificates and keys need (pure)
- `names`      distinguished names as Java writes them, and the rules that map them (pure)
- `ciphers`    cipher suites: Java's names and OpenSSL's (pure)
- `contexts`   `ssl.SSLContext`s for brokers and clients, replaced when files change
- `authority`  a development authority and the certificates it issues

PKCS12 files and the development authority need the package cryptography, imported when used.
"""
