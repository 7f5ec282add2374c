"""Quantities; the expected spellings were printed by k8s.io/apimachinery."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.quantity import InvalidQuantity, Quantity, QuantityForm, parse_quantity

quantities = st.builds(
    lambda number, suffix: parse_quantity(f"{number}{suffix}"),
    st.decimals(min_value=-(10**9), max_value=10**9, places=3).map(lambda d: f"{d:f}"),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2", "e+1"]),
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("+12Gi", "12Gi"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("0500Ki", "500Ki"),
        ("0.5Ki", "512"),
        ("1.1Mi", "1153433600m"),
        ("1500000", "1500k"),
        ("1E", "1E"),
        ("1024.000E", "1024E"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1.5e1", "15"),
        ("12e-3", "12e-3"),
        ("0.1n", "1n"),
        ("-1.25", "-1250m"),
        ("1048576.25e+2", "104857625"),
        ("123456789.125M", "123456789125k"),
        ("9223372036854775807Ki", "9223372036854775807"),
        (2, "2"),
        (0.25, "250m"),
    ],
)
def test_a_quantity_is_printed_as_the_server_prints_it(text: object, printed: str) -> None:
    assert str(parse_quantity(text)) == printed


@pytest.mark.parametrize(
    "text",
    ["", "G", ".", "m", "1K", "1mi", "1 Gi", "e3", "1e", "1e1.5", "--1", "1Gi2", "١", None, True, [], "1e999999999"],
)
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(InvalidQuantity, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("terms", "printed"),
    [
        (("1000Mi", "1000Mi"), "2000Mi"),
        (("100m", "900m"), "1"),
        (("1Gi", "1G"), "2073741824"),
        (("1G", "1Gi"), "2073741824"),
        (("0", "1Gi"), "1Gi"),
        (("512Mi", "512Mi"), "1Gi"),
    ],
)
def test_a_sum_keeps_the_suffix_form_of_its_first_term(terms: tuple[str, str], printed: str) -> None:
    first, second = map(parse_quantity, terms)
    assert str(first + second) == printed


def test_amounts_are_equal_whatever_their_spelling() -> None:
    assert parse_quantity("1Ki") == parse_quantity("1024") == parse_quantity("1024000m")


def test_whole_units_are_rounded_up() -> None:
    assert (parse_quantity("1100m").value, parse_quantity("-1100m").value) == (2, -1)


@given(quantities)
def test_printing_and_reading_gives_the_same_amount_and_text(quantity: Quantity) -> None:
    again = parse_quantity(str(quantity))
    assert (again, str(again)) == (quantity, str(quantity))


@given(quantities, quantities, quantities)
def test_addition_is_exact(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert (a + b) + c == a + (b + c)
    assert (a + b).nano - b.nano == a.nano
    assert a * 3 == a + a + a


@given(st.integers(min_value=-(10**27), max_value=10**27), st.sampled_from(QuantityForm))
def test_every_amount_can_be_printed(nano: int, form: QuantityForm) -> None:
    assert parse_quantity(str(Quantity(nano=nano, form=form))).nano == nano


@given(st.text() | st.from_regex(r"[-+]?[0-9.]{0,9}[a-zA-Z]{0,3}[-+]?[0-9]{0,4}", fullmatch=True))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        parse_quantity(text)
    except InvalidQuantity:
        pass
