"""What GitHub runs for us is pinned: a tag can be moved to other code, a commit can't."""

import re

from tests.house import tree

STEP = re.compile(r"uses:\s*(\S+)(.*)")
PINNED = re.compile(r"[\w.-]+/[\w.-]+(/[\w./-]+)?@[0-9a-f]{40}")


def test_every_action_is_pinned_by_commit_with_its_tag_beside_it():
    files = sorted((tree.ROOT / ".github" / "workflows").glob("*.y*ml"))
    steps = [(file.name, *STEP.search(line).groups()) for file in files
             for line in file.read_text().splitlines() if STEP.search(line.partition("# ")[0])]  # fmt: skip
    assert len(steps) >= 9
    loose = [step for step in steps if not PINNED.fullmatch(step[1]) or not re.search(r"# v\d", step[2])]
    assert loose == []
    # One action is one commit everywhere.
    assert len({step[1] for step in steps}) == len({step[1].partition("@")[0] for step in steps})
