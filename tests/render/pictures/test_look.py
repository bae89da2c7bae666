"""Numbers, bars and shades of pictures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infold.render.pictures.look import Look, compact, shade, shade_limits, shades_text

PLAIN, FULL = Look(80), Look(80, plain=False)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-1204, "-1,204"),
        (12.5, "12.5"),
        (1 / 3, "0.33"),
        (0.0625, "0.062"),
        (99_999, "99,999"),
        (123_456, "123k"),
        (999_999, "1,000k"),
        (3_412_345, "3.41M"),
        (-7.5e12, "-7.5T"),
        (2.5e40, "2.5e+40"),
        (1e-9, "1e-09"),
    ],
)
def test_numbers_are_short(number: float, text: str) -> None:
    """Numbers have three digits or all before the point, and a unit where they are large."""
    assert compact(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_has_room(number: float) -> None:
    """Ten characters hold any number."""
    assert len(compact(number)) <= 10


def test_a_bar_is_as_long_as_its_share() -> None:
    """To an eighth of a character; what is not 0 is seen, and 0 is not."""
    assert [FULL.bar(share, 4) for share in (0, 0.001, 0.5, 0.53125, 1)] == [
        "",
        "▏",
        "██",
        "██▏",
        "████",
    ]
    assert [PLAIN.bar(share, 4) for share in (0, 0.001, 0.5, 1)] == ["", "#", "##", "####"]


def test_shades_cover_powers() -> None:
    """The most rows have the darkest shade, one row the lightest, none a blank."""
    limits = shade_limits(10_000)

    assert limits == (1, 10, 100, 1000)
    assert [shade(PLAIN, rows, limits) for rows in (0, 1, 9, 10, 999, 10_000)] == list(" ..:*#")
    assert shades_text(FULL, limits) == "░ 1  ▒ 10  ▓ 100  █ 1,000 rows or more"


@given(st.integers(1, 10**18))
def test_shades_say_what_they_mean(most: int) -> None:
    """The legend has the shade of each number that it names."""
    limits = shade_limits(most)
    text = shades_text(PLAIN, limits)

    assert shade(PLAIN, most, limits) == "#"
    for part in text.removesuffix(" rows or more").split("  "):
        sign, number = part.split()
        assert shade(PLAIN, int(number.replace(",", "")), limits) == sign


def test_a_plain_picture_has_no_colours() -> None:
    """Nor has a full one around blanks."""
    assert PLAIN.tinted("x", "blue") == "x"
    assert FULL.tinted("x", "blue") == "\x1b[34mx\x1b[0m"
    assert FULL.tinted("  ", "blue") == "  "
    assert PLAIN.screen(["a · b…  "]) == "a - b~"
