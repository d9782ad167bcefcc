"""What a page lets through: our own elements, pictures inside the page, links; no scripts, styles, frames or forms."""

from __future__ import annotations

import re

from bleach.sanitizer import Cleaner

_TAGS = frozenset(
    "a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img "
    "kbd li math mfrac mi mn mo mrow msqrt mstyle msub msubsup msup mtable mtd mtext mtr munderover ol p pre q s section small "
    "span strong sub summary sup table tbody td tfoot th thead time tr u ul var".split())
_EVERYWHERE = frozenset(("aria-hidden", "aria-label", "class", "dir", "id", "lang", "role", "tabindex", "title"))
_OWN = {
    "a": frozenset(("href",)), "img": frozenset(("alt", "height", "src", "width")), "col": frozenset(("span",)),
    "details": frozenset(("open",)), "math": frozenset(("display",)), "ol": frozenset(("start",)),
    "td": frozenset(("colspan", "rowspan", "headers")), "th": frozenset(("colspan", "rowspan", "headers", "scope")),
}
_PICTURE = re.compile(r"data:image/(?:svg\+xml|png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*\Z")
_LINK = re.compile(r"(?:https?://|mailto:|[^:]*(?:[/?#]|\Z))", re.IGNORECASE)
# Notebooks' own tables bring a style sheet; its text is no content, so it goes whole. The rest is cleaned after this.
_STYLE = re.compile(r"<style\b[^>]*>.*?</style\s*>", re.IGNORECASE | re.DOTALL)


def clean(html: str) -> str:
    """Return HTML with everything not allowed turned into visible text, so that nothing acts and nothing is hidden."""
    return _CLEANER.clean(_STYLE.sub("", html))


def _is_allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img" and name == "src":
        return bool(_PICTURE.match(value))
    if tag == "a" and name == "href":
        return bool(_LINK.match(value))
    return name in _EVERYWHERE or name in _OWN.get(tag, ())


_CLEANER = Cleaner(tags=_TAGS, attributes=_is_allowed, protocols=frozenset(("data", "http", "https", "mailto")), strip=False,
                   strip_comments=True)
