"""Archive: one folder per study, a generated index, and first verdicts that are kept."""

import json
from collections import Counter
from pathlib import Path

from docs.pages.archive import archive_index, replace_published
from docs.pages.published import FIRST, PUBLISHED, first_reports, latest_report, provenance_of


def test_the_committed_archive_index_equals_the_generated_index() -> None:
    assert (PUBLISHED / "README.md").read_text() == archive_index()


def test_a_study_has_one_published_folder() -> None:
    files = list(PUBLISHED.rglob("provenance.json"))
    assert {file.parent.parent for file in files} == {PUBLISHED}
    studies = Counter(provenance_of(file.parent).get("study") for file in files)
    del studies[None]  # a joined table has several studies
    assert max(studies.values()) == 1


def _report(folder: Path, verdict: str, ended: int) -> Path:
    folder.mkdir(parents=True)
    provenance = {
        "study": "small",
        "source": "study: small\nclaims: [{says: so, source: me, that: {}}]\n",
        "code": {"commit": f"{ended:07}"},
        "last_epoch_stored_at_ms": ended,
        "arms": {"erm": {}},
        "runs": [{"run_key": "0", "arm": "erm", "seconds": 1.5}],
    }
    (folder / "provenance.json").write_text(json.dumps(provenance))
    (folder / "verdicts.csv").write_text(f"says,verdict,low,high\nso,{verdict},0,1\n")
    (folder / "runs.csv").write_text("arm,seed\n")
    (folder / "table.csv").write_text("arm\n")
    (folder / "tables").mkdir()
    (folder / "tables" / "looks.csv").write_text(f"{verdict}\n")
    return folder


def test_a_new_report_replaces_the_older_one_and_keeps_its_first_verdicts(tmp_path: Path) -> None:
    published = tmp_path / "published"
    published.mkdir()
    (published / FIRST).touch()
    (published / "small").mkdir()
    (published / "small" / "looks.csv").touch()
    old = {"study": "small", "code": {"commit": "0"}, "source": "", "last_epoch_stored_at_ms": 0}
    (published / "small" / "provenance.json").write_text(json.dumps(old))
    for number, verdict in enumerate(("undecided", "holds", "fails")):
        replace_published(_report(tmp_path / verdict, verdict, number), published)
    found = latest_report(published, "small")
    assert found.folder == published / "small"
    assert found.told["so"]["verdict"] == "fails"
    assert first_reports(published)["small"].told["so"]["verdict"] == "undecided"
    assert not (published / "small" / "table.csv").exists(), "it follows from runs.csv"
    assert (published / "small" / "looks.csv").read_text() == "fails\n", "it was there before"
    short = provenance_of(published / "small")
    assert short["runs"] == [{"run_key": "0", "seconds": 1.5}]
    assert "arms" not in short
