"""Every kind of page in a real browser: open to everybody, no request, fits every width, prints."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import opened, started

pytestmark = pytest.mark.browser
PAGES = (
    "index.html", "claims.html", "method.html", "story.html", "studies/made.html", "runs/made/index.html",
    "sources/mysql-kubernetes.html",
)  # fmt: skip
WIDTHS = (390, 820, 1280)
# A target of 24 pixels is a rule of WCAG 2.2, which axe leaves out unless it is asked for.
RULES = {"rules": {"target-size": {"enabled": True}}}
# The size in pixels of each letter in a figure: the drawing is laid out once more, as large as its image. A
# bar within a row has no letters, and so no words of its own either.
LETTERS = """
() => [...document.images].filter(one => one.clientWidth && one.alt).flatMap(image => {
  const host = document.body.appendChild(document.createElement('div'));
  const inside = host.attachShadow({mode: 'open'});
  const bytes = Uint8Array.from(atob(image.src.split(',')[1]), one => one.charCodeAt(0));
  inside.innerHTML = new TextDecoder().decode(bytes);
  const drawn = inside.querySelector('svg');
  drawn.style.width = `${image.clientWidth}px`;
  drawn.style.height = `${image.clientHeight}px`;
  const sizes = [...inside.querySelectorAll('text')].map(one => {
    const scale = one.getScreenCTM();
    return Math.hypot(scale.a, scale.b) * parseFloat(getComputedStyle(one).fontSize);
  });
  host.remove();
  if (!sizes.length) throw new Error(`no letters in ${image.alt}`);
  return sizes;
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with started() as running:
        yield running


def show(browser, file: Path, width: int, scheme: str = "light"):
    return opened(browser, file, width, color_scheme=scheme)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_at_any_width(browser, public, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    told = []
    for width in WIDTHS:
        page = show(browser, public / name, width, scheme)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        found = Axe().run(page, options=RULES).response["violations"]
        told += [(width, one["impact"], one["id"], one["nodes"][0]["html"][:200]) for one in found]
        page.context.close()
    assert told == []


@pytest.mark.parametrize("name", PAGES)
def test_it_asks_for_nothing_fits_every_width_and_prints(browser, public, name):
    """And the smallest letters of a figure can be read on a phone."""
    for width in WIDTHS:
        page = show(browser, public / name, width)
        assert page.trouble == []
        if width == min(WIDTHS):
            assert min(page.evaluate(LETTERS), default=11) > 10.95
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = "[...document.querySelectorAll('.scroll:has(> .results)')]"
        assert page.evaluate(f"{boxes}.every(box => box.scrollWidth <= box.clientWidth + 1)")
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('.site, nav')].every(one => !one.offsetHeight)")
    assert len(page.pdf(format="A4")) > 10_000


def test_one_gets_from_the_first_page_to_a_raw_log_by_clicks(browser, public):
    page = show(browser, public / "index.html", 1400)
    page.locator(".first tbody th a").last.click()
    page.locator("section.answer table.results td a").first.click()
    assert "#finding-" in page.url
    page.locator("details.part summary", has_text="Every run").click()
    page.locator("#cells ~ .scroll").first.locator("tbody a").first.click()
    place = page.url.partition("#")[2]
    assert "/runs/made/index.html#run-" in page.url
    log = page.locator(f"tr:has([id='{place}']) a", has_text="log").first
    assert (public / "runs" / "made" / log.get_attribute("href")).resolve().is_file()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_bars_of_the_first_page_have_their_scale_in_sight(browser, public, width):
    page = show(browser, public / "index.html", width)
    table = page.locator(".first").last
    bar = table.locator("tbody .line img").last
    bar.scroll_into_view_if_needed()
    scale, drawn = table.locator("thead img").bounding_box(), bar.bounding_box()
    assert 0 <= scale["y"] < 900 and scale["height"] > 10
    assert abs(scale["x"] - drawn["x"]) < 1 and abs(scale["width"] - drawn["width"]) < 1
