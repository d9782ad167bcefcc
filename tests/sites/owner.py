"""A process of another owner that holds a lab with all arms of a study up, for tests that take it away."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchbook import sites
from benchbook.core.study.study import StudySpec
from benchbook.sites.contract import Start


@contextlib.contextmanager
def owning(study: StudySpec, folder: Path, *during: str) -> Iterator[subprocess.Popen[str]]:
    """Such a process, once all is up; it makes what some arms have about them in a run, too."""
    asked = study.model_dump_json(exclude_defaults=True)
    argv = [sys.executable, "-m", "tests.sites.owner", asked, str(folder), *during]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == "up\n"
        yield owner
        owner.kill()


def main() -> None:
    """Do what the arguments say."""
    study = StudySpec.model_validate_json(sys.argv[1], strict=False)
    with sites.open_site(study, Path(sys.argv[2])) as site, contextlib.ExitStack() as stack:
        for arm in study.arms:
            site.up(arm)
        if study.site.kind == "local":
            site.client(Start(["/bin/sleep", "60"], site.lab.run / "out", site.lab.run / "err"))
        for arm in sys.argv[3:]:
            stack.enter_context(site.during(arm))
        print("up", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main()
