"""The lab folder: private where it must be, reachable where a server's user must get in."""

import os
import stat
from pathlib import Path

import pytest

from benchbook.core.util.errors import SiteError
from benchbook.sites import workspace as labs
from benchbook.sites.agent import facts


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_two_clones_and_two_studies_have_different_labs(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("BENCHBOOK_LAB_DIR", raising=False)
    clones = (tmp_path / "a", tmp_path / "b")
    folders = {labs.lab_folder(clone, study) for clone in clones for study in ("x", "y")}
    assert len(folders) == 4
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(tmp_path))
    assert labs.lab_folder(tmp_path / "a", "x") == tmp_path / "x"


def test_the_disk_of_a_folder_that_is_not_there_yet_is_that_of_the_nearest_above_it(tmp_path: Path) -> None:
    assert labs.find_nearest(tmp_path / "a" / "b") == labs.find_nearest(tmp_path) == tmp_path
    free = labs.free_bytes(tmp_path / "a" / "b")
    assert abs(free - labs.free_bytes(tmp_path)) < 1 << 30
    moment = facts.read_moment(tmp_path / "a" / "b")
    assert abs((moment["disk_free_mib"] << 20) - free) < 1 << 30


def test_a_lab_is_found_again_with_its_token_and_password(open_folder: Path) -> None:
    first, second = labs.open_lab(open_folder / "again"), labs.open_lab(open_folder / "again")
    assert first == second and first.password() == second.password()
    assert mode(first.folder) == 0o711
    assert [mode(first.folder / name) for name in ("run", "secrets", "lab.json")] == [0o700, 0o700, 0o600]
    assert mode(first.secret) == 0o600
    assert labs.read_secret(first.secret)[0] == "benchbook"


def test_a_folder_with_other_things_in_it_is_refused(open_folder: Path) -> None:
    folder = open_folder / "home"
    folder.mkdir()
    (folder / "thesis.txt").touch()
    with pytest.raises(SiteError, match="not a lab"):
        labs.open_lab(folder)
    assert os.listdir(folder) == ["thesis.txt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's server runs as that user")
def test_a_closed_parent_is_named_with_the_command_that_opens_it(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(SiteError, match=f"chmod o\\+x {closed}"):
        labs.open_lab(closed / "lab")


def test_a_path_too_long_for_a_socket_is_refused(open_folder: Path) -> None:
    lab = labs.open_lab(open_folder / "again")
    with pytest.raises(SiteError, match="BENCHBOOK_LAB_DIR"):
        lab.socket(Path("/") / ("x" * 100) / "server" / "m.sock")


def test_a_private_file_replaces_a_link_instead_of_following_it(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("untouched")
    (tmp_path / "secret").symlink_to(tmp_path / "other")
    (tmp_path / "secret.tmp").symlink_to(tmp_path / "other")
    labs.write_private(tmp_path / "secret", "new")
    assert (tmp_path / "other").read_text() == "untouched"
    assert (tmp_path / "secret").read_text() == "new" and mode(tmp_path / "secret") == 0o600


def test_a_cut_account_file_is_told_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "cut").write_text('mysql-user="benchbook"\n')
    with pytest.raises(SiteError, match=r"mysql-password is missing.*provision"):
        labs.read_secret(tmp_path / "cut")


@pytest.mark.parametrize("name", ["my lab", "it's", "$(date)", "a\nb", "böse"])
def test_a_folder_that_a_server_s_script_would_take_apart_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBOOK_LAB_DIR", str(tmp_path / name))
    with pytest.raises(SiteError, match="BENCHBOOK_LAB_DIR"):
        labs.lab_root(tmp_path)
