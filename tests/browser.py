"""A real Chromium for the tests that look at pages, and a page that notes whatever should not happen."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
ARGUMENTS += ["--disable-component-update", "--no-first-run"]


def program() -> str | None:
    """Return the browser that this machine has, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def started() -> Iterator[Any]:
    """Start the browser; it ends with the block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        yield browser
        browser.close()


def opened(browser: Any, file: Path, width: int, **context: Any) -> Any:
    """Open a file in a window of this width; `trouble` of the page lists requests, errors and messages."""
    page = browser.new_context(viewport={"width": width, "height": 900}, **context).new_page()
    page.trouble = []
    page.on("request", lambda request: page.trouble.append(request.url))
    page.on("console", lambda message: page.trouble.append(message.text))
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.goto(file.as_uri())
    page.trouble[:] = [what for what in page.trouble[1:] if not what.startswith("data:")]
    return page
