"""HTML pages: `report.html` of a study in one file, and a website with all reports of a home.

index.html          one card per report: conclusion, main figure, verdicts, runs, date, commit
STUDY/              a copy of the report's folder
"""

import base64
import csv
import errno
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from mixup_core.config.written_forms import flatten
from mixup_core.rules import spell_time
from mixup_core.store.errors import UnreadableError
from mixup_core.store.json_records import read_note, record_of
from mixup_core.store.local_files import read_regular
from mixup_core.temporary import require_places
from reports.figures.canvas import Figure
from reports.numbers.spelling import sentences
from reports.pages.report_folders import Provenance, holds_report, listed_files, replace_files
from reports.tables.captions import spell_settings
from reports.tables.listings import Listing
from reports.tables.table import Table
from sweeps.study.study import Study, spell_seeds

MAIN_FIGURE = "final_values"
_PIECE = 3 * 2**14
"""Bytes that are encoded at a time in a data URL; a multiple of three, so base64 needs no padding.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """An HTML page; iterating over it yields its text in pieces, because figures can be long."""

    template: Template
    values: Mapping[str, Any]

    def __iter__(self) -> Iterator[str]:
        """Yield the text of the page in pieces, in order."""
        return self.template.generate(self.values)


def render_page(  # noqa: PLR0913  what a page is made of
    study: Study,
    table: Table,
    conclusion: Sequence[str],
    figures: Sequence[Figure],
    provenance: Mapping[str, Any],
    *,
    leading: Sequence[Listing] = (),
    listings: Sequence[Listing] = (),
    files: Mapping[str, str] | None = None,
    pages: str | None = None,
) -> Page:
    """Return the page of a report as HTML; all inserted text is escaped."""
    return Page(
        template=_template("page.html"),
        values={
            "study": study,
            "table": table,
            "conclusion": conclusion,
            "leading": leading,
            "listings": listings,
            "minutes": {a: _minutes_per_run(study, a, provenance["runs"]) for a in study.arms},
            "figures": figures,
            "downloads": {} if files is None else files,
            "main_figure": MAIN_FIGURE,
            "facts": _run_of(study, provenance),
            "details": _facts(provenance),
            "num_runs": len(provenance["runs"]),
            "source": provenance["source"],
            "pages": pages,
        },
    )


def _template(name: str) -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "zip": zip,
        "coded": _coded,
        "addressed": _addressed,
        "sentences": sentences,
    }
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return environment.from_string(text)


def _coded(text: str) -> Markup:
    """Return a text escaped for HTML, in which words in backticks are set as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def _minutes_per_run(study: Study, arm: str, runs: Sequence[Mapping[str, Any]]) -> float | None:
    keys = {run.key for run in study.runs_of(arm)}
    seconds = [
        run["seconds"] for run in runs if run["run_key"] in keys and run["outcome"] == "complete"
    ]
    return sum(seconds) / len(seconds) / 60 if seconds else None


def _addressed(content: str | bytes, kind: str) -> Iterator[str]:
    """Yield a file as a data URL, in pieces."""
    yield f"data:{kind};base64,"
    plain = content.encode() if isinstance(content, str) else content
    for start in range(0, len(plain), _PIECE):
        yield base64.b64encode(plain[start : start + _PIECE]).decode()


def _run_of(study: Study, provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return what was run: arms, seeds, network, images, epochs and device."""
    flats = [flatten(config) for config in study.arms.values()]
    networks = dict.fromkeys(str(flat["model.name"]) for flat in flats if "model.name" in flat)
    epochs = sorted({config.epochs for config in study.arms.values()})
    devices = {place.get("device", "") for place in provenance["environments"]}
    return _known(
        {
            "arms": f"{len(study.arms)}: {', '.join(study.arms)}",
            "seeds": spell_seeds({run.seed for run in study.runs()}).removeprefix("seeds "),
            "network": ", ".join(networks),
            "data": spell_settings(study, study.headline),
            study.problem.axis.unit + "s": ", ".join(map(str, epochs)),
            "device": ", ".join(sorted(devices)),
        }
    )


def _facts(provenance: Mapping[str, Any]) -> dict[str, str]:
    code = provenance["code"]
    checksums = provenance["data_checksums"].items()
    return _known(
        {
            "command": provenance["command"],
            "code": "commit unknown" if code is None else _spell_code(code),
            "versions": _spell_pairs(provenance["versions"]),
            "trained on": "; ".join(map(_spell_pairs, provenance["environments"])),
            "selection rule": provenance["selection_rule"],
            "first epoch stored": spell_time(provenance["first_epoch_stored_at_ms"]),
            "last epoch stored": spell_time(provenance["last_epoch_stored_at_ms"]),
            "sha256 of constraints.txt": provenance["constraints_sha256"] or "",
            **{f"checksums of {name}": _spell_pairs(of_data) for name, of_data in checksums},
        }
    )


def _known(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: fact for name, fact in facts.items() if fact}


def _spell_code(code: Mapping[str, Any]) -> str:
    changes = ", with uncommitted changes" if code["dirty"] else ""
    return f"{code['commit']} ({code['branch']}{changes})"


def _spell_pairs(pairs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs.items() if value)


_LARGEST = 2**30
_MARK = b'content="mixsweep publish"'
"""Text that identifies a page of this program."""
_HEAD = 2**12


def write_site(reports: Path, out: Path) -> tuple[Mapping[str, Any], ...]:
    """Write a website of all reports in a folder; return what its index shows of each, by name.

    Other files in the folder `out`, such as files of an earlier site, are not deleted.
    """
    folders = sorted(path for path in reports.glob("[!.]*") if (path / "report.html").is_file())
    entries = tuple(map(_entry, folders))
    index = _template("site.html").render(entries=entries)
    _require_own(out, [folder.name for folder in folders])
    for folder in folders:
        place = out / folder.name
        replace_files(place, dict(_contents(folder)), is_own=holds_report(place))
    replace_files(out, {"index.html": index, ".nojekyll": ""}, is_own=True)
    return entries


def _require_own(out: Path, names: Sequence[str]) -> None:
    """Check that a folder is empty or was written by this program."""
    own = ["index.html", *(f"{name}/report.html" for name in names)]
    require_places(out, own, is_own=True)
    index = out / "index.html"
    if index.exists() and _MARK not in read_regular(index, _HEAD):
        raise FileExistsError(
            errno.EEXIST, "is a page of another website, not a site of mixsweep", str(index)
        )
    for folder in (out / name for name in names):
        if folder.exists() and not holds_report(folder) and any(folder.iterdir()):
            raise FileExistsError(
                errno.EEXIST, "contains files, but no report of mixsweep", str(folder)
            )


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    names = listed_files(folder)
    if not names:
        raise UnreadableError(
            f"{folder}: provenance.json does not list the files of the report; write the report "
            "again"
        )
    # Order matters: provenance first, by which the next command knows a folder that is written in
    # part; tests/reports/pages/test_html_pages.py fails.
    for name in sorted(names, key=lambda name: name != "provenance.json"):
        path = folder / name
        if any(each.is_symlink() for each in (path, *path.parents[: name.count("/") + 1])):
            raise UnreadableError(f"{path}: is a link or below one; write the report again")
        try:
            yield name, read_regular(path, _LARGEST)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UnreadableError(f"{path}: is missing; write the report again") from error


def _entry(folder: Path) -> dict[str, Any]:
    try:
        found = record_of(Provenance, read_note(folder / "provenance.json"))
        named = next((name for name in found.files if name.endswith("verdicts.csv")), "")
        verdicts = tuple(_verdicts(folder / named))
    except (ValueError, KeyError, csv.Error) as error:
        raise UnreadableError(
            f"{folder}: provenance.json or verdicts.csv is damaged ({type(error).__name__}: "
            f"{error}); write the report again"
        ) from error
    return {
        "name": folder.name,
        "description": found.description,
        "is_finished": found.finished,
        "num_runs": len(found.runs),
        "num_complete": sum(run.outcome == "complete" for run in found.runs),
        "seeds": len({run.seed for run in found.runs}),
        "commit": "" if found.code is None else found.code.commit[:7],
        "date": spell_time(found.last_epoch_stored_at_ms, "%Y-%m-%d"),
        "conclusion": found.conclusion,
        "figure": found.main_figure if found.main_figure in found.files else "",
        "verdicts": verdicts,
    }


def _verdicts(file: Path) -> Iterator[tuple[str, str]]:
    if file.is_file():
        for row in csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))):
            yield row["says"], row["verdict"]
