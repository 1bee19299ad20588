"""The kit: what a declared line gives."""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.settings import (
    AtLeast,
    Between,
    Doc,
    Dynamic,
    Long,
    Matches,
    OneOf,
    Settings,
    Short,
    Type,
    Words,
)
from ottla.model.errors import UserError


class Sample(Settings):
    a_number: Annotated[int, AtLeast(1, (-1,)), Dynamic("cluster"), Doc("A number.")] = 5
    a_short: Annotated[Short, Doc("A short.")] = 1
    a_long: Annotated[Long | None, Between(0, 2**62), Doc("A long.")] = None
    a_ratio: Annotated[float, Between(0, 1), Doc("A ratio.")] = 0.5
    a_flag: Annotated[bool, Doc("A flag.")] = True
    a_word: Annotated[str, OneOf(("red", "blue")), Dynamic("broker"), Doc("A word.")] = "red"
    some_words: Annotated[Words, Matches("[a-z]+", "small letters"), Doc("Words.")] = ("x",)
    a_set: Annotated[Words, OneOf(("p", "q")), Doc("A set.")] = ("p",)
    a_secret: Annotated[str | None, Type.PASSWORD, Doc("A secret.")] = None


class Larger(Sample):
    one_more: Annotated[int, Doc("Another.")] = 0


def test_an_instance_has_the_defaults() -> None:
    sample = Sample.parse({})
    assert sample == Sample()
    assert (sample.a_number, sample.a_long, sample.some_words) == (5, None, ("x",))


def test_text_becomes_typed_values() -> None:
    sample = Sample.parse(
        {
            "a.number": " 7 ",
            "a.short": "-3",
            "a.long": "4611686018427387904",
            "a.ratio": "2.5e-1",
            "a.flag": "FALSE",
            "a.word": "blue",
            "some.words": "a, b ,c",
            "a.set": "q,p,q",
            "not.a.setting": "is left alone",
        }
    )
    assert sample == Sample(
        a_number=7,
        a_short=-3,
        a_long=2**62,
        a_ratio=0.25,
        a_flag=False,
        a_word="blue",
        some_words=("a", "b", "c"),
        a_set=("q", "p"),
    )


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("a.number", "ten", "a whole number"),
        ("a.number", "", "a whole number"),
        ("a.number", "1_000", "a whole number"),
        ("a.number", "٣", "a whole number"),
        ("a.number", "1.5", "a whole number"),
        ("a.number", "0", "at least 1 or -1"),
        ("a.number", "-2", "at least 1 or -1"),
        ("a.number", "2147483648", "at most 32 bits"),
        ("a.number", "9" * 5000, "a whole number"),
        ("a.short", "32768", "at most 16 bits"),
        ("a.short", "-32769", "at most 16 bits"),
        ("a.long", "9223372036854775808", "at most 64 bits"),
        ("a.long", "-1", "between 0 and"),
        ("a.long", "", "a whole number"),
        ("a.ratio", "half", "a number"),
        ("a.ratio", "nan", "a number"),
        ("a.ratio", "1.2.3", "a number"),
        ("a.ratio", "1.01", "between 0 and 1"),
        ("a.flag", "yes", "true or false"),
        ("a.word", "green", "one of red, blue"),
        ("some.words", "a,B", "small letters"),
        ("some.words", "a,,b", "small letters"),
        ("a.set", "p,r", "one of p, q"),
    ],
)
def test_a_bad_value_is_refused_naming_the_key_the_value_and_what_was_expected(
    key: str, text: str, expected: str
) -> None:
    with pytest.raises(UserError) as refusal:
        Sample.parse({key: text}, source="server.properties")
    said = str(refusal.value)
    assert said.startswith(f"{key}={text!r}: expected ")
    assert expected in said
    assert said.endswith("(server.properties)")


def test_an_empty_text_unsets_an_optional_setting_and_empties_a_list() -> None:
    sample = Sample.parse({"a.secret": "", "some.words": "", "a.set": ""})
    assert (sample.a_secret, sample.some_words, sample.a_set) == (None, (), ())


def test_a_list_keeps_the_order_it_was_given_in() -> None:
    setting = Sample.SETTINGS["a.set"]
    for text in ("p,q", "q,p"):
        assert setting.show(setting.read(text)) == text
    assert setting.show(setting.read("q, p ,q")) == "q,p"


def test_settings_do_not_change() -> None:
    sample = Sample()
    with pytest.raises(AttributeError, match="a_number"):
        sample.a_number = 6  # type: ignore[misc]
    assert sample.changed(a_number=6) == Sample(a_number=6)
    assert sample.a_number == 5


def test_an_unknown_attribute_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="no setting"):
        Sample(a_numbr=1)  # type: ignore[call-arg]


def test_only_what_differs_takes_memory() -> None:
    assert vars(Sample.parse({"a.number": "9"})) == {"a_number": 9}


def test_groups_are_joined_by_inheritance() -> None:
    assert list(Larger.SETTINGS) == [*Sample.SETTINGS, "one.more"]
    assert Larger.parse({"one.more": "3", "a.number": "4"}) == Larger(one_more=3, a_number=4)


def test_the_listing_tells_documents_all_there_is() -> None:
    setting = Sample.SETTINGS["a.number"]
    assert (setting.name, setting.kind, setting.default) == ("a.number", Type.INT, 5)
    assert (setting.bounds, setting.scope, setting.doc) == (
        "at least 1 or -1",
        "cluster",
        "A number.",
    )
    kinds = {setting.name: setting.kind for setting in Sample.SETTINGS.values()}
    assert kinds == {
        "a.number": Type.INT,
        "a.short": Type.SHORT,
        "a.long": Type.LONG,
        "a.ratio": Type.DOUBLE,
        "a.flag": Type.BOOLEAN,
        "a.word": Type.STRING,
        "some.words": Type.LIST,
        "a.set": Type.LIST,
        "a.secret": Type.PASSWORD,
    }


def test_a_secret_is_never_shown() -> None:
    sample = Sample(a_secret="hunter2")
    assert "hunter2" not in repr(sample)
    assert "[hidden]" in repr(sample)
    secret = Sample.SETTINGS["a.secret"]
    assert secret.sensitive
    assert "hunter2" not in str(secret._error("hunter2", "anything", "", ("hunter2", "no")))


VALUES = st.one_of(
    st.tuples(st.just("a.number"), st.integers(1, 2**31 - 1)),
    st.tuples(st.just("a.long"), st.integers(0, 2**62)),
    st.tuples(st.just("a.ratio"), st.floats(0, 1)),
    st.tuples(st.just("a.flag"), st.booleans()),
    st.tuples(st.just("a.set"), st.lists(st.sampled_from("pq"), unique=True).map(tuple)),
)


@given(VALUES)
def test_what_is_shown_can_be_read_again(pair: tuple[str, int | float | tuple[str, ...]]) -> None:
    name, value = pair
    setting = Sample.SETTINGS[name]
    shown = setting.show(value)
    assert shown is not None
    assert setting.read(shown) == value


def test_doubles_are_shown_as_java_shows_them() -> None:
    ratio = Sample.SETTINGS["a.ratio"]
    assert ratio.show(1.7976931348623157e308) == "1.7976931348623157E308"
    assert ratio.show(0.5) == "0.5"
