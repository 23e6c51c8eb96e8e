"""JSON of artifacts holds nothing that cannot be printed again."""

import pytest

from disco_cli.files.strict_json import parse_json


def test_ordinary_json():
    assert parse_json('{"a": [1, 2.5, null, "😀"]}') == {"a": [1, 2.5, None, "😀"]}
    assert parse_json(b'"\\ud83d\\ude00"') == "😀"


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "-1e999", r'"\ud800"', "[" * 100_000, "{", b"\xff", "9" * 5000]
)
def test_what_cannot_be_written_again_is_refused(text):
    with pytest.raises(ValueError, match=r"\S"):
        parse_json(text)
