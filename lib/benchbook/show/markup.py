"""HTML that shows itself in a notebook, and the escaping that everything written by others goes through."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

# Terminal colours and cursor movements (ECMA-48 control sequences), then every other control character.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Characters without a picture that turn or hide the text around them: overrides of the direction, characters
# of no width, separators of lines, fillers, tags and the variation selectors that can carry a message.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# An address in a text, without the punctuation that ends its sentence.
ADDRESS = re.compile(r"https://[^\s()<>\"]+[^\s()<>\".,;:]")


@dataclass(frozen=True)
class Html:
    """A piece of HTML that is safe to put on a page as it is."""

    text: str

    def _repr_html_(self) -> str:
        return self.text

    # Lets a template take it as it is.
    __html__ = _repr_html_

    def __repr__(self) -> str:
        return f"<Html, {len(self.text)} characters>"


def show_invisible(text: str) -> str:
    """Write every invisible character of a text as its code, such as \\u202e."""

    def code(match: re.Match[str]) -> str:
        point = ord(match[0])
        return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"

    return _INVISIBLE.sub(code, text)


def strip_control(text: object) -> str:
    """Drop terminal control sequences and control characters from a text; show the invisible characters."""
    return show_invisible(_CONTROL.sub("", _ANSI.sub("", str(text))))


def escape_html(value: object) -> str:
    """Make any value safe inside HTML text and attributes; HTML passes unchanged."""
    return value.__html__() if hasattr(value, "__html__") else html.escape(strip_control(value), quote=True)


def escape_markdown(text: object) -> str:
    """Escape a text for Markdown, so that names can't become markup or mentions; HTML passes unchanged."""
    if isinstance(text, Html):
        return text.text
    return re.sub(r"([\\`*_\[\]<>|#&@~])", r"\\\1", re.sub(r"[ \t\r\n]+", " ", strip_control(text)))


def make_slug(text: object) -> str:
    """Make a text usable as an anchor: letters, digits, dot, underscore and hyphen only."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", strip_control(text)).strip("-").lower() or "section"


def make_element(name: str, *content: object, **attributes: object) -> Html:
    """Write one HTML element; content and attribute values are escaped, `class_` means class."""
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape_html(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{''.join(pairs)}>{''.join(map(escape_html, content))}</{name}>")


def link_addresses(text: str) -> Html:
    """Write a text with every address as a link."""
    pieces = re.split(f"({ADDRESS.pattern})", text)
    return join_html(
        [make_element("a", part, href=part) if place % 2 else part for place, part in enumerate(pieces)], ""
    )


def join_html(parts: Iterable[object], between: str = "\n") -> Html:
    """Put pieces after each other, each escaped unless it is HTML."""
    return Html(between.join(escape_html(part) for part in parts))
