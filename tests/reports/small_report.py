"""The folder of a small report, written without a study."""

import json
from pathlib import Path


def write_report(folder: Path, **provenance: object) -> None:
    """Write a report with one figure and one verdict.

    Args:
        folder: Folder of the report, which must not exist.
        provenance: Entries of its provenance that replace the usual ones.
    """
    folder.mkdir(parents=True)
    (folder / "figures").mkdir()
    (folder / "tables").mkdir()
    (folder / "figures" / "a.svg").write_bytes(b"\x89svg")
    (folder / "report.html").write_text(f"<p>{folder.name}</p>")
    (folder / "tables" / "verdicts.csv").write_text(
        'says,verdict,value,low,high,reference,n\n"A is <better>, by far",holds,1,0,2,,5\n'
    )
    content = {
        "study": "one", "settings": "0" * 32, "arms": {},
        "description": "Does A beat `B < C`?", "finished": True, "seeds": [0, 1], "code": None,
        "conclusion": ["Test error is <lower>.", "B is not decided."],
        "main_figure": "figures/a.svg",
        "last_epoch_stored_at_ms": 1_795_569_753_752,
        "runs": [
            {"run_key": "a", "seed": 0, "outcome": "complete", "has_predictions": True},
            {"run_key": "b", "seed": 1, "outcome": "diverged", "has_predictions": False},
        ],
    }  # fmt: skip
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    files = {"files": ["provenance.json", *names]}
    (folder / "provenance.json").write_text(json.dumps(content | files | provenance))
