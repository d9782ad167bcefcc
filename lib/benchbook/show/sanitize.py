"""Content that a page allows: our elements, inline pictures, links; no script, frame or form."""

import re

from bleach.sanitizer import Cleaner

_PLAIN = frozenset((
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd", "del",
    "details", "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "hr", "i",
    "img", "kbd", "li", "ol", "p", "pre", "q", "s", "section", "small", "span", "strong", "sub",
    "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "time", "tr", "u", "ul",
    "var",
))  # fmt: skip
_FORMULAS = (
    "math", "mfrac", "mi", "mn", "mo", "mrow", "msqrt", "msub", "msubsup", "msup", "mtext", "munderover",
)  # fmt: skip
_EVERYWHERE = ("aria-hidden", "aria-label", "class", "dir", "id", "lang", "role", "tabindex", "title")
_OWN = {
    "a": ("href",),
    "img": ("alt", "height", "src", "width"),
    "col": ("span",),
    "details": ("open",),
    "math": ("display",),
    "ol": ("start",),
    "td": ("colspan", "data-label", "rowspan", "headers"),
    "th": ("colspan", "rowspan", "headers", "scope"),
}
_PICTURE = re.compile(r"data:image/(?:svg\+xml|png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*\Z")
_LINK = re.compile(r"(?:https?://|mailto:|[^:]*(?:[/?#]|\Z))", re.IGNORECASE)
# Notebooks' own tables bring a style sheet: its text is no content and goes whole before the rest is cleaned.
_STYLE = re.compile(r"<style\b[^>]*>.*?</style\s*>", re.IGNORECASE | re.DOTALL)
# Text and the one tag behind it, as our own tables have them. In addresses nothing is written as a code.
_PIECE = re.compile(
    r"(?:[^<>&\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|&(?:amp|lt|gt|quot|\#x27|\#3[49]);)*+"
    r"(?:<(?P<end>/?)(?P<tag>[a-z][a-z0-9]*)(?P<own>(?: [a-z-]+=\"[^\"<>\x00-\x1f\x7f]*\")*+)>|\Z)"
)
_ATTRIBUTE = re.compile(r' ([a-z-]+)="([^"]*)"')
_ADDRESS = re.compile(r"[!#-%'-~]*")
_EMPTY = frozenset(("br", "col", "hr", "img"))


def sanitize_html(html: str) -> str:
    """HTML with everything not allowed turned into visible text: nothing acts, nothing is hidden."""
    html = _STYLE.sub("", html)
    return html if _is_clean(html) else _CLEANER.clean(html)


def _is_clean(html: str) -> bool:
    """True if HTML is written as ours and allowed: to parse a page of tables would take a second."""
    place = 0
    open_: list[str] = []
    while match := _PIECE.match(html, place):
        tag, place = match["tag"], match.end()
        if tag is None:
            return not open_
        if tag not in _PLAIN or not all(_is_plain(tag, *pair) for pair in _ATTRIBUTE.findall(match["own"])):
            return False
        if match["end"]:
            if match["own"] or open_[-1:] != [tag]:
                return False
            open_.pop()
        elif tag not in _EMPTY:
            open_.append(tag)
    return False


def _is_plain(tag: str, name: str, value: str) -> bool:
    is_address = name in ("href", "src")
    return _is_allowed(tag, name, value) and not (is_address and not _ADDRESS.fullmatch(value))


def _is_allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img" and name == "src":
        return bool(_PICTURE.match(value))
    if tag == "a" and name == "href":
        return bool(_LINK.match(value))
    return name in _EVERYWHERE or name in _OWN.get(tag, ())


_CLEANER = Cleaner(
    tags={*_PLAIN, *_FORMULAS},
    attributes=_is_allowed,
    protocols=frozenset(("data", "http", "https", "mailto")),
    strip=False,
    strip_comments=True,
)
