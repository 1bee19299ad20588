"""What `make run` shows.

- `seconds`    for how long; needs nothing but Python
- `clients`    a broker that two other people's clients write to and read from
- `shoppers`   people in a shop: page views, searches and orders, some of them garbled
- `shop`       the pipeline that makes sense of them, and the check that nothing is missing
- `shop.yaml`  that pipeline's file
"""
