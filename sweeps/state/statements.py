"""Statements: records of when each claim of a study was first launched and how often shown.

    studies/<study>/statements.json    for every claim ever launched: time, seeds, how often shown
    studies/<study>/forgotten.json     last stage keys of runs that were trained and then deleted

Reports use them to show which claims were stated before the results were known. No result of a run
depends on this file. If it cannot be read, it is started anew.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.store.json_records import (
    Natural,
    RecordError,
    Time,
    name_once,
    parse_note,
    record_of,
)
from sweeps.state.results import RunResult, judged_of
from sweeps.study.claims import Claim
from sweeps.study.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """The record of one claim: its first launch, and the reports that showed its results."""

    at_ms: Time
    """Unix time in ms of the first launch with the claim."""
    finished: Natural
    """Number of runs of the claim's arms that were finished at its first launch."""
    runs: Natural
    """Number of runs of the claim's arms at its first launch."""
    seeds: tuple[int, ...]
    """Seeds of the study at the claim's first launch."""
    looks: Natural = 0
    """Number of later reports that showed the claim with more finished runs than the report
    before.
    """
    seen: Natural = 0
    """Number of finished runs of the claim's arms in the last report that `looks` counts."""
    shown: tuple[str, ...] = ()
    """Sets of seeds, and plans of looks, for which a report or planned look used results of the
    claim; each is written once, the earliest first."""
    extended: Natural = 0
    """Number of times that a report or planned look used other seeds (added, removed, replaced) or
    another plan than all before; `shown` has them."""
    extended_after: str = ""
    """Number of finished runs that a report had shown before the last change that `extended`
    counts, as text, such as `9 finished runs`; empty if only planned looks had used them."""
    plan: str = ""
    """Planned looks at the last launch, at which seeds are added until claims are decided; empty if
    there are none."""
    says: str = ""
    """Sentence of the claim at its first launch."""
    terms: Mapping[str, str] | None = None
    """Parts of the claim by name, such as its metric and margin; None in records of an earlier
    version."""
    changed: str = ""
    """Text with the differences from an earlier claim, if this claim replaced it after runs had
    finished; otherwise empty."""
    archive: str = ""
    """sha256 of the archive that brought this record; empty if the claim was launched here."""

    def __str__(self) -> str:
        """Return when the claim was stated, as text."""
        text = "before the runs"
        if self.finished:
            text = f"after {self.finished} of {self.runs} runs"
            if self.changed:
                text = f"changed {text}: {self.changed}"
        if self.extended:
            times = "once" if self.extended == 1 else f"{self.extended} times"
            text += f"; {_spell_change(self.plan)} {times} after a look"
            text += f", at {self.extended_after}" if self.extended_after else ""
        return text + (f" (says the archive {self.archive[:12]})" if self.archive else "")


def num_changes(statements: Mapping[Claim, Statement]) -> int:
    """Return how often the seeds or planned looks were changed after a report of the claims."""
    return max((statement.extended for statement in statements.values()), default=0)


def statement_key(study: Study, claim: Claim) -> str:
    """Return a hash of a claim's content, which names of arms and other words do not change."""
    that, keys = claim.that, study.keys_at(0)
    terms = sorted((keys.get(arm, arm), factor) for arm, factor in that.terms.items())
    # Frozen: what is hashed, in which order. Each claim would count as a new one, first stated now;
    # tests/sweeps/state/test_statements.py fails.
    parts = [that.metric, str(that.readout or study.readout), terms, list(map(repr, that.allowed))]
    if that.together:
        parts += [str(that.networks), sorted(keys.get(arm, arm) for arm in that.together)]
    parts += [that.of] if that.of else []
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def state(study: Study, store: Store) -> None:
    """Record that a new launch states the claims of its study; known claims keep their time."""
    statements = dict(_read(study, store))
    current = {statement_key(study, claim) for claim in study.claims}
    gone = [statement for key, statement in statements.items() if key not in current]
    is_new = not current <= statements.keys()
    stored = {*store.keys(), *_forgotten(study.name, store)} if is_new else set()
    now_ms = time.time_ns() // 1_000_000
    plan, judged = "" if study.until is None else study.until.plan, study.judged()
    for claim in study.claims:
        key = statement_key(study, claim)
        before = statements.get(key)
        if before is not None:
            statements[key] = replace(before, seeds=study.seeds, plan=plan)
            continue
        runs = [r for arm in claim.that.terms if arm in study.arms for r in judged.runs_of(arm)]
        finished = sum(stage_keys(run.config)[-1] in stored for run in runs)
        terms = _terms(study, claim)
        statements[key] = Statement(
            at_ms=now_ms,
            finished=finished,
            runs=len(runs),
            seeds=study.seeds,
            plan=plan,
            says=claim.says,
            terms=terms,
            changed=_changes(claim.says, terms, study.seeds, gone) if finished else "",
        )
    write_statements(study.name, store, statements)


def note_forgotten(study: str, ends: Iterable[str], store: Store) -> None:
    """Record the last stages of runs that are deleted: later claims are stated after these runs."""
    known = dict.fromkeys([*_forgotten(study, store), *ends])
    store.files.write(f"studies/{study}/forgotten.json", json.dumps(known).encode())


def _forgotten(study: str, store: Store) -> list[str]:
    contents = store.files.read_present([f"studies/{study}/forgotten.json"])
    return [end for _, content in contents for end in parse_note(content) or ()]


def _shown_as(study: Study) -> str:
    """Return the planned looks of a study, or else its seeds, as text; the order is ignored."""
    if study.until is not None:
        return study.until.plan
    seeds = str(sorted(study.seeds))
    confirm = () if study.search is None else study.search.strategy.confirm_seeds
    return f"{seeds}, confirmed at {sorted(confirm)}" if confirm else seeds


def _with_shown(statement: Statement, shown_as: str) -> Statement:
    """Return a record as it is after a report that uses the given seeds or planned looks."""
    shown = statement.shown
    if shown_as in shown:
        return statement
    changed = replace(statement, shown=(*shown, shown_as))
    if not shown:
        return changed
    after = f"{statement.seen} finished runs" if statement.seen else ""
    return replace(changed, extended=statement.extended + 1, extended_after=after)


def _terms(study: Study, claim: Claim) -> dict[str, str]:
    """Return the parts of a claim that may change between launches, by key of the study file."""
    that, keys = claim.that, study.keys_at(0)
    sides = (that.left, that.right)
    return {
        "relation": that.relation,
        "arms": ", ".join(" minus ".join(s) if isinstance(s, tuple) else str(s) for s in sides),
        "metric": that.metric,
        "margin": "none" if that.margin is None else repr(that.margin),
        "factor": "none" if that.factor is None else repr(that.factor),
        "readout": str(that.readout or study.readout),
        **({"of": that.of} if that.of else {}),
        **({"together": f"{that.networks} of {', '.join(that.together)}"} if that.together else {}),
        **{f"settings of {arm}": keys.get(arm, arm) for arm in that.terms},
    }


def _changes(
    says: str, terms: Mapping[str, str], seeds: tuple[int, ...], gone: Sequence[Statement]
) -> str:
    """Return, as text, how a claim differs from the one it replaces: `margin 0.02, was 0.01`."""
    earlier = [(statement, dict(statement.terms)) for statement in gone if statement.terms]
    alike = [(statement, was) for statement, was in earlier if statement.says == says] or [
        (statement, was)
        for statement, was in earlier
        if was["metric"] == terms["metric"]
        and any(name.startswith("settings of ") and name in terms for name in was)
    ]
    if not alike:
        return ""
    before, was = max(alike, key=lambda pair: pair[0].at_ms)
    parts = [
        f"other {name}" if name.startswith("settings of ") else f"{name} {now}, was {was[name]}"
        for name, now in terms.items()
        if name in was and now != was[name]
    ]
    if seeds != before.seeds:
        parts.append(f"{len(seeds)} seeds, were {len(before.seeds)}")
    if before.looks:
        parts.append(f"{before.looks} look{'s' if before.looks > 1 else ''} before")
    return "; ".join(parts)


def look(
    study: Study, store: Store, results: Iterable[RunResult], *, is_report: bool = True
) -> None:
    """Record that a report or planned look uses results of claims (`looks`, `seen`, `extended`)."""
    statements = dict(_read(study, store))
    _, judged = judged_of(study, tuple(results))
    finished = Counter(result.run.arm for result in judged if result.outcome == "complete")
    least = 0 if is_report or study.until is None else study.until.at_least
    for claim in study.claims:
        key, by_arm = statement_key(study, claim), [finished[arm] for arm in claim.that.terms]
        if key not in statements or not any(by_arm) or min(by_arm) < least:
            continue
        statement, seen = _with_shown(statements[key], _shown_as(study)), sum(by_arm)
        if is_report and seen > statement.seen:
            statement = replace(statement, looks=statement.looks + 1, seen=seen)
        statements[key] = statement
    if statements:
        write_statements(study.name, store, statements)


def statements_of(study: Study, store: Store) -> dict[Claim, Statement]:
    """Return the record of each claim as it is after a report of this study."""
    by_key = _read(study, store)
    by_claim = {claim: by_key.get(statement_key(study, claim)) for claim in study.claims}
    shown_as = _shown_as(study)
    return {
        claim: _with_shown(statement, shown_as)
        for claim, statement in by_claim.items()
        if statement is not None
    }


def spell_statements(statements: Iterable[Statement]) -> str:
    """Return when claims were stated: `1 of 3 after the runs began, 2 looks` (reports)."""
    stated = tuple(statements)
    if not stated:
        return ""
    late = sum(statement.finished > 0 for statement in stated)
    parts = [f"{late} of {len(stated)} after the runs began" if late else "before the runs"]
    if any(statement.extended for statement in stated):
        changed = next(s for s in stated if s.extended)
        parts.append(f"{_spell_change(changed.plan)} after a look")
    if looks := max(statement.looks for statement in stated):
        parts.append(f"{looks} look{'s' if looks > 1 else ''}")
    if any(statement.archive for statement in stated):
        parts.append("as an archive says")
    return ", ".join(parts)


def _spell_change(plan: str) -> str:
    return "planned looks changed" if plan else "seeds changed"


def stated_in(study: str, store: Store) -> Mapping[str, Statement]:
    """Return the records of all claims that a study ever had, by `statement_key` of the claim."""
    name, statements = _name(study), dict[str, Statement]()
    with suppress(StoreError, OSError, ValueError):
        for _, content in store.files.read_present([name]):
            for key, plain in (parse_note(content) or {}).items():
                try:
                    statements[key] = record_of(Statement, plain)
                except RecordError as error:
                    name_once(name, str(error.within(key)))
    return statements


def _name(study: str) -> str:
    return f"studies/{study}/statements.json"


def _read(study: Study, store: Store) -> Mapping[str, Statement]:
    return stated_in(study.name, store) if study.claims else {}


def write_statements(study: str, store: Store, known: Mapping[str, Statement]) -> None:
    """Store the records of a study's claims; ignore failures to write."""
    content = {key: asdict(statement) for key, statement in known.items()}
    if content and content != {k: asdict(v) for k, v in stated_in(study, store).items()}:
        with suppress(StoreError, OSError):
            store.files.write(_name(study), json.dumps(content, indent=0).encode())
