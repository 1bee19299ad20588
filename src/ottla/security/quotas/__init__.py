"""Client quotas: how much a client may use, and how long it is throttled if it uses more.

Pure: time and usage are arguments. What is measured and where a reply is throttled is in
`api/throttling.py`; where quotas are stored is in `shared_state/quota_store.py`. The formulas are
in `delay/rates.py`.

- `entities`       users, client ids and IP addresses with quotas, and which of them applies
- `client_quotas`  the quotas in force and the usage of each client
- `metrics`        rates and throttle times of clients under a quota
"""
