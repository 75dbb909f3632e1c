"""Texts of others, made harmless."""

from privasso._text import escaped, for_sheets, from_sheets, is_unicode, json_text


def test_what_a_terminal_would_not_print_is_an_escape():
    assert escaped("age\n\x1b[31m \u202eyears") == "age\\n\\x1b[31m \\u202eyears"
    assert json_text({"größe": "\x1b[31m\u202e"}) == '{"größe": "\\u001b[31m\\u202e"}'


def test_a_spreadsheet_executes_no_name():
    assert for_sheets("=1+1") == "'=1+1"
    assert for_sheets("age") == "age"
    assert from_sheets("'=1+1") == "=1+1"
    assert from_sheets("'90s") == "'90s"


def test_a_lone_surrogate_cannot_be_written():
    assert is_unicode("größe")
    assert not is_unicode("\ud800")
