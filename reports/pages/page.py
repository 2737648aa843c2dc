"""Page: `report.html`, with the tables, figures and provenance of a study in one file."""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from mixup_core.config.written_forms import flatten
from reports.figures.canvas import Figure
from reports.tables.captions import spell_settings
from reports.tables.listings import Listing
from reports.tables.table import Table
from sweeps.study.study import Study, spell_seeds

_TEMPLATE = Path(__file__).with_name("page.html")
MAIN_FIGURE = "final_values"
"""Name of the figure with which a report opens."""
_PIECE = 3 * 2**14
"""Bytes that are encoded at a time in a data URL; a multiple of three, so base64 needs no padding.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """An HTML page; iterating over it yields its text in pieces, because figures can be long."""

    template: Template
    values: Mapping[str, Any]
    """Values that the template shows."""

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
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "zip": zip,
        "coded": coded,
        "addressed": _addressed,
        "sentences": _sentences,
    }
    return Page(
        template=environment.from_string(_TEMPLATE.read_text(encoding="utf-8")),
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


def coded(text: str) -> Markup:
    """Return a text escaped for HTML, in which words in backticks are set as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def _sentences(caption: str) -> list[str]:
    """Return the sentences of a caption."""
    return re.split(r"(?<=\.)(?<!\bal\.) ", caption)


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
            "seeds": spell_seeds(study.seeds).removeprefix("seeds "),
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
            "code": "no git repository" if code is None else _spell_code(code),
            "versions": _spell_pairs(provenance["versions"]),
            "trained on": "; ".join(map(_spell_pairs, provenance["environments"])),
            "selection rule": provenance["selection_rule"],
            "first epoch stored": _spell_time(provenance["first_epoch_stored_at_ms"]),
            "last epoch stored": _spell_time(provenance["last_epoch_stored_at_ms"]),
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


def _spell_time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
