"""Which tables a database's query reads."""

from __future__ import annotations

import pytest

from ottla.spark.pipelines.lineage.database_tables import Table, tables_read


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("SELECT * FROM items", ["items"]),
        ("SELECT * FROM Shop.Items i WHERE x = 'from y'", ["shop.items"]),
        ('SELECT * FROM "Shop"."Items" AS i JOIN b USING (id) -- FROM c', ["Shop.Items", "b"]),
        (
            "SELECT * FROM a, b AS x, c.d y, (SELECT 1 FROM e) z, f WHERE 1",
            ["a", "b", "c.d", "f", "e"],
        ),
        ("WITH w AS (SELECT * FROM a) SELECT * FROM w JOIN b ON true", ["a", "b"]),
        ("SELECT extract(day FROM at), trim(both FROM n) FROM a", ["a"]),
        ("SELECT a IS DISTINCT FROM b FROM c WHERE EXISTS (SELECT 1 FROM d)", ["c", "d"]),
        ("SELECT * FROM generate_series(1, 3) AS n, LATERAL f(n), t", ["t"]),
        ("SELECT 1", []),
        ("SELECT * FROM", []),
    ],
)
def test_tables_are_found_where_they_may_stand(query: str, tables: list[str]) -> None:
    assert [".".join((*table.outer, table.name)) for table in tables_read(query)] == tables


def test_a_table_has_the_names_around_it_that_the_query_leaves_out() -> None:
    outer = ("shop", "public")
    assert Table((), "items").name_within(outer) == "shop.public.items"
    assert Table(("other",), "items").name_within(outer) == "shop.other.items"
    assert Table(("db", "other"), "items").name_within(outer) == "db.other.items"
