"""Published reports: reads `reports/published`, and saves the verdicts of replaced reports."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sweeps.study.claims import Claim
from sweeps.study.study import Study

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"

FIRST = "first_verdicts.jsonl"
"""File with the verdicts of first reports that were replaced; one study per line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A published report: the claims that its study file had, their verdicts, and its runs."""

    told: Mapping[str, Mapping[str, str]]
    """Row of each claim in `verdicts.csv`, by the sentence of the claim."""
    source: Mapping[str, Any]
    """The parsed study file of the report."""
    runs: tuple[Mapping[str, str], ...] = ()
    """The rows of `runs.csv`; empty for a first report that was replaced."""
    folder: Path | None = None
    """Folder of the report; None for a first report that was replaced."""
    is_finished: bool = True
    """False if runs of the study were missing when the report was written."""
    ended_at_ms: int | None = None
    """Time in ms at which the last epoch was stored. Reports of the same runs have the same time.
    """

    @property
    def written(self) -> tuple[Mapping[str, Any], ...]:
        """The claims as they were written in the study file when this report was made."""
        return tuple(self.source.get("claims") or ())

    def setting(self, arm: str) -> tuple[Any, Any]:
        """Return `base`, the settings of all arms, and the settings of one arm of the study file.

        Each is the entry as the study file of the report has it; None if there is no such entry.
        """
        return self.source.get("base"), (self.source.get("arms") or {}).get(arm)

    def row_of(self, claim: Claim, study: Study) -> Mapping[str, str]:
        """Return the row of `verdicts.csv` on the same comparison; empty if there is none.

        The sentence of a claim may have been reworded since the report was written.
        """
        now = written_claims(study)[claim.says]
        same = (c["says"] for c in self.written if c["that"] == now)
        return next((self.told[says] for says in same if says in self.told), {})

    def stated(self, claim: Claim, study: Study) -> str:
        """Return when a claim was stated, as recorded in the report: before or after its runs."""
        row = self.row_of(claim, study)
        return (row.get("stated") or "not recorded") if row else "after the report"

    def outdated(self, study: Study) -> frozenset[str]:
        """Return the arms whose runs would have other keys today although their settings are equal.

        Such runs were trained by code that has been corrected since.
        """
        seed = min((int(run["seed"]) for run in self.runs), default=None)
        if seed is None or self.source.get("base") != yaml.safe_load(study.source).get("base"):
            return frozenset()
        keys = study.keys_at(seed)
        return frozenset(
            run["arm"]
            for run in self.runs
            if int(run["seed"]) == seed and keys.get(run["arm"], run["run_key"]) != run["run_key"]
        )

    @property
    def is_of_today(self) -> bool:
        """True if the present rules for claims were used: each verdict then has a `confidence`."""
        return all("confidence" in row for row in self.told.values())

    def values(self, claim: Claim, study: Study) -> dict[str, dict[int, float]]:
        """Return the values of a claim's metric in `runs.csv` of this report, by arm and seed.

        The result is empty if the claim uses another read-out than the study.
        """
        that = claim.that
        if that.readout not in (None, study.readout):
            return {}
        found: dict[str, dict[int, float]] = {}
        for run in self.runs:
            if run.get(that.metric):
                by_seed = found.setdefault(run["arm"], {})
                by_seed[int(run["seed"])] = float(run[that.metric])
        return found


def written_claims(study: Study) -> dict[str, Mapping[str, Any]]:
    """Return the comparison of each claim as the study file writes it, by the claim's sentence."""
    claims = yaml.safe_load(study.source).get("claims") or []
    return {claim["says"]: claim["that"] for claim in claims}


def latest_report(published: Path, study: str) -> Published | None:
    """Return the published report of a study; None if there is none.

    The report is in the folder `STUDY`. A report without claims is left out.
    """
    folder = published / study
    is_of_study = (folder / "verdicts.csv").is_file() and provenance_of(folder).get(
        "study"
    ) == study
    return read_report(folder) if is_of_study else None


def read_report(folder: Path) -> Published:
    """Read a report from a folder with `provenance.json` and `verdicts.csv`."""
    provenance = provenance_of(folder)
    return Published(
        told={row["says"]: row for row in rows_of(folder / "verdicts.csv")},
        source=_study_file(provenance.get("source")),
        runs=tuple(rows_of(folder / "runs.csv")),
        folder=folder,
        is_finished=provenance.get("finished", True),
        ended_at_ms=provenance["last_epoch_stored_at_ms"],
    )


def first_reports(published: Path) -> dict[str, Published]:
    """Return the saved first report of each study whose first report was replaced, by study.

    A saved report has the claims and verdicts, but not the runs.
    """
    lines = (json.loads(line) for line in (published / FIRST).read_text("utf-8").splitlines())
    return {
        line["study"]: Published(
            told={row["says"]: row for row in line["verdicts"]},
            source=_study_file(line["source"]),
            ended_at_ms=line["last_epoch_stored_at_ms"],
        )
        for line in lines
    }


def record_first(published: Path, folder: Path) -> None:
    """Save the verdicts of a study's first report before that report is replaced.

    They are added to the file `first_verdicts.jsonl`. If the file has verdicts of this study
    already, nothing changes.

    Args:
        published: Folder of all published reports, with the file.
        folder: Folder of the report.
    """
    provenance = provenance_of(folder)
    if provenance["study"] in first_reports(published) or not (folder / "verdicts.csv").is_file():
        return
    line = {
        "study": provenance["study"],
        "commit": provenance["code"]["commit"],
        "last_epoch_stored_at_ms": provenance["last_epoch_stored_at_ms"],
        "source": provenance["source"],
        "verdicts": list(rows_of(folder / "verdicts.csv")),
    }
    with (published / FIRST).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def provenance_of(folder: Path) -> dict[str, Any]:
    """Return the content of `provenance.json` in a folder."""
    found: dict[str, Any] = json.loads((folder / "provenance.json").read_text("utf-8"))
    return found


def file_of(report: Path, name: str) -> Path:
    """Return a file of a report; a published report has no folder `tables`."""
    below = report / "tables" / name
    return below if below.is_file() else report / name


def rows_of(file: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file as mappings from column to text."""
    with file.open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def _study_file(source: Any) -> Mapping[str, Any]:
    return yaml.safe_load(source or "") or {} if not isinstance(source, Mapping) else source
