import shutil
from pathlib import Path

from docs.pages.looks_index import looks_index
from docs.pages.published import PUBLISHED


def test_a_published_study_can_be_replayed_with_looks(tmp_path: Path) -> None:
    shutil.copytree(PUBLISHED / "order-of-laws", tmp_path / "order-of-laws")
    *_, line = looks_index(tmp_path).strip().splitlines()
    cells = (cell.strip() for cell in line.split("|")[1:-1])
    name, looks, claims, runs, with_looks, saved, differ = cells
    assert (name, looks, claims) == ("order-of-laws", "3, 4, 5, 6, 8, 10", "6")
    assert int(runs) == 70
    assert int(with_looks) < 60
    assert saved == f"{100 * (70 - int(with_looks)) / 70:.0f} %"
    assert differ == "—", "mirrored claims are decided as without looks"
