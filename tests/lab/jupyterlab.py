"""JupyterLab driven as a person does: open a notebook, Run All, save; then the saved file is looked at."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import beside
from tests.browser import started
from tests.pipeline.clone import Clone

START = "notebooks/explore/browse.ipynb"
# The status bar says idle before the kernel answers, so the kernel itself is asked. Each wait has an end.
READY = """
async () => {
  const within = (ms, what, promise) => Promise.race([
    promise, new Promise((_, no) => setTimeout(() => no(new Error(what + ' took too long')), ms)),
  ]);
  const app = window.jupyterapp;
  await within(60000, 'JupyterLab', app.restored);
  const panel = app.shell.currentWidget;
  await within(60000, 'the notebook', panel.context.ready);
  await within(60000, 'the session', panel.sessionContext.ready);
  const kernel = panel.sessionContext.session.kernel;
  await within(90000, 'the kernel', kernel.info);
  await within(60000, 'an answer of the kernel', kernel.requestKernelInfo());
  return panel.context.path;
}
"""
RUN_ALL = """
async (ms) => {
  const within = (promise) => Promise.race([
    promise, new Promise((_, no) => setTimeout(() => no(new Error('Run All took too long')), ms)),
  ]);
  const app = window.jupyterapp;
  await within(app.commands.execute('runmenu:run-all'));
  await within(app.commands.execute('docmanager:save'));
}
"""


class Lab:
    """A JupyterLab of one clone and a browser to see it with."""

    def __init__(self, address: str, token: str, browser: Any, clone: Clone) -> None:
        self.address, self.token, self.browser, self.clone = address, token, browser, clone

    def open(self, path: str = "", width: int = 1400, height: int = 1000) -> Any:
        """Open a file of the clone, or what the Lab opens on, and wait until its kernel answers."""
        page = self.browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(120_000)
        page.elsewhere = []
        here = (self.address, self.address.replace("http", "ws"), "data:", "blob:")
        page.on("request", lambda asked: asked.url.startswith(here) or page.elsewhere.append(asked.url))
        way = f"/lab/tree/{path}?reset&token={self.token}" if path else f"/?token={self.token}"
        page.goto(self.address + way)
        page.wait_for_function("() => window.jupyterapp && window.jupyterapp.shell")
        page.evaluate("() => window.jupyterapp.restored")
        # Tabs of last time come back first; what the address names is opened after them.
        page.wait_for_function(
            "path => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=path or START
        )
        page.opened = page.evaluate(READY)
        return page

    def run_all(self, path: str, timeout_s: float = 240, picture: Path | None = None) -> list[dict[str, Any]]:
        """Run All and save; return the saved code cells, all of them executed and without error."""
        page = self.open(path)
        assert page.opened == path
        page.evaluate(RUN_ALL, 1000 * timeout_s)
        if picture:
            page.screenshot(path=picture)
        assert page.elsewhere == [], "a request left this machine"
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        page.close()
        saved = json.loads((self.clone.path / path).read_text(encoding="utf-8"))
        cells = [cell for cell in saved["cells"] if cell["cell_type"] == "code"]
        outputs = (output for cell in cells for output in cell["outputs"])
        failed = [output for output in outputs if output["output_type"] == "error"]
        assert not failed, f"{path}: {failed}"
        assert all(cell["execution_count"] for cell in cells if "".join(cell["source"]).strip()), path
        return cells


@contextmanager
def running(clone: Clone) -> Iterator[Lab]:
    """Start JupyterLab as `make lab` does, with a browser beside it; both end with the block."""
    log = clone.path.parent / "lab.log"
    asked = ["sh", "tools/lab.sh", f"--ServerApp.port={_free_port()}", "--LabApp.expose_app_in_browser=True"]
    with log.open("w") as said:
        server = subprocess.Popen(
            asked, cwd=clone.path, env=_environment(clone), stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        address, token = _address(log, server)
        with started() as browser:
            yield Lab(address, token, browser, clone)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _environment(clone: Clone) -> dict[str, str]:
    """No settings of the person who runs the tests, and no root given: the clone is found from notebooks/."""
    home = clone.path.parent / "home"
    home.mkdir(exist_ok=True)
    places = {"HOME": home, "JUPYTER_CONFIG_DIR": home / "config", "JUPYTER_DATA_DIR": home / "data"}
    kept = {key: value for key, value in clone.environment().items() if not key.startswith("JUPYTER_")}
    return kept | {key: str(place) for key, place in places.items()}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _address(log: Path, server: subprocess.Popen[bytes]) -> tuple[str, str]:
    form = re.compile(r"(http://127\.0\.0\.1:\d+)/\S*token=([0-9a-f]{32,})")
    beside.until(lambda: form.search(log.read_text()) or server.poll() is not None, 90)
    printed = form.search(log.read_text())
    assert printed, f"JupyterLab did not start: {log.read_text()[-2000:]}"
    return printed[1], printed[2]
