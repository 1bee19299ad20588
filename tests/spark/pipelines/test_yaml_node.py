"""A mistake in a file is said with the place it is at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.yaml_node import Node

WORDS = {
    "text": "orders",
    "number": 3,
    "flag": True,
    "list": ["a", "b"],
    "inner": {"name": "x", "on": True, "count": 2},
    "items": [{"name": "one"}, {"name": "two"}],
}


def test_what_is_asked_for_is_given() -> None:
    node = Node(WORDS)
    assert node.text("text") == "orders"
    assert node.text("number") == "3"
    assert node.text("nothing", "else") == "else"
    assert node.maybe("nothing") is None
    assert node.number("number") == 3
    assert node.texts("list") == ("a", "b")
    assert node.texts("text") == ("orders",)
    assert node.table("inner") == {"name": "x", "on": "true", "count": "2"}
    assert [one.text("name") for one in node.items("items")] == ["one", "two"]
    assert node.node("inner").at("name") == "inner.name"
    assert node.raw("flag") is True
    node.done()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda node: node.text("nothing"), "top.nothing: missing"),
        (lambda node: node.text("inner"), "top.inner: expected text, got a mapping"),
        (lambda node: node.text("flag"), "top.flag: expected text, got True"),
        (lambda node: node.number("text"), "top.text: expected a whole number, at least 0"),
        (lambda node: node.number("number", least=4), "top.number: expected a whole number"),
        (lambda node: node.texts("items"), "top.items: expected text or a list of texts"),
        (lambda node: node.items("text"), "top.text: expected a list, got 'orders'"),
        (lambda node: node.items("items")[1].text("key"), "top.items[1].key: missing"),
        (lambda node: node.choice("text", ("a", "b")), "top.text: 'orders': expected one of a, b"),
        (lambda node: node.one_of(("text", "list")), "top: expected one of text, list; got text"),
        (lambda node: node.one_of(("x", "y")), "top: expected one of x, y; got none of them"),
        (lambda node: node.node("text"), "top.text: expected a mapping, got 'orders'"),
        (lambda node: node.node("nothing"), "top.nothing: missing"),
    ],
)
def test_a_mistake_names_its_place(ask: Callable[[Node], object], said: str) -> None:
    with pytest.raises(UserError) as mistake:
        ask(Node(WORDS, "top"))
    assert str(mistake.value).startswith(said)


def test_a_name_that_nobody_asked_for_is_a_mistake_with_the_nearest_known() -> None:
    node = Node({"topick": "orders"}, "sources.views")
    node.maybe("topic")
    with pytest.raises(UserError, match=r"sources\.views\.topick: .*did you mean topic\?"):
        node.done()


def test_a_file_of_something_else_is_said_to_be_that() -> None:
    with pytest.raises(UserError, match="the file: expected a mapping, got a list"):
        Node([1, 2])
    with pytest.raises(UserError, match="the key 1 is not text"):
        Node({1: "x"})
