"""Kinds: every kind of file in a home, its store and a data folder, with ways to damage it."""

import dataclasses
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.leasing.lease import Lease
from sweeps.leasing.stops import ask_to_stop
from sweeps.reading.study_file import load_study
from sweeps.study.study import Study
from tests.conftest import CommandLine
from tests.damages import CONTENTS, DAMAGES, Damage

DEEP = "deeply nested"
NEWER = "newer format"
OTHER = "another of its kind"
GRID, SEARCH = "damage-grid", "damage-search"
"""The studies of a home: a launch of a finished grid leaves a conclusion, a search proposals."""
TIMED = frozenset({"report.html", "provenance.json"})
"""Files of a report that contain times or the command."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """A folder of files to damage: results, datasets, a user's images and two study files."""

    folder: Path

    @property
    def runs(self) -> Path:
        """Folder that is passed as `--home`."""
        return self.folder / "runs"

    @property
    def data(self) -> Path:
        """Folder that is passed as `MIXSWEEP_DATA`."""
        return self.folder / "data"

    def mixsweep(self, *prefix: str) -> CommandLine:
        """Return a command line on this home."""
        return CommandLine(home=self.runs, data=self.data, extra={}, prefix=prefix)

    def file_of(self, study: str) -> Path:
        """Return the file of a study."""
        return self.folder / f"{study}.yaml"

    @cached_property
    def study(self) -> Study:
        """Return the grid study."""
        return load_study(str(self.file_of(GRID)), ())

    def begin(self) -> None:
        """Write the study files and the images of the grid."""
        self.folder.mkdir()
        for study in (GRID, SEARCH):
            there = Path(__file__).with_name(f"{study}.yaml")
            self.file_of(study).write_bytes(there.read_bytes())
        rng = np.random.default_rng(0)
        for split, count in (("train", 8), ("test", 4)):
            for label, name in enumerate(("cat", "dog")):
                place = self.folder / "photos" / split / name
                place.mkdir(parents=True)
                for index in range(count):
                    pixels = rng.integers(90 * label, 90 * label + 120, (8, 8, 3), dtype=np.uint8)
                    Image.fromarray(pixels).save(place / f"{index}.png")

    def complete(self) -> None:
        """Add files that a finished launch does not leave: a failure, a lease, a stop request."""
        store = Store(str(self.runs / "store"))
        failure = Failure(run_key="aa01", kind="failed", message="of old", epoch=None, attempts=1)
        store.failures.write(failure)
        store.failures.write(dataclasses.replace(failure, run_key="aa02"))
        for study in (GRID, SEARCH):
            holder = Lease.latest(store, study)
            assert holder is not None
            ask_to_stop(store, study, holder, "finish")
            progress = {"token": holder.token, "running": [], "updated_at_ms": 0}
            (self.runs / "store" / "leases" / f"{study}.progress.json").write_text(
                json.dumps(progress)
            )

    def store(self, pattern: str) -> Path:
        """Return the first file of the store whose path matches."""
        return sorted((self.runs / "store").glob(pattern))[0]

    def stage(self, run: int, epochs: int) -> Path:
        """Return the manifest of a run of the grid after some epochs."""
        key = stage_keys(self.study.runs()[run].config)[epochs - 1]
        return self.store(f"stages/*/{key}.json")

    def of_last_stage(self, run: int, pattern: str) -> Path:
        """Return a file of the store; KEY in the pattern is the key of a run's last stage."""
        return self.store(pattern.replace("KEY", self.stage(run, 2).stem))

    def decoded(self, data: str) -> Path:
        """Return the decoded file of a dataset."""
        return sorted(self.data.glob(f"decoded-*/{data}-*.pt"))[0]

    def report(self, study: str = GRID) -> Path:
        """Return the folder of a report."""
        return self.runs / "reports" / study

    def reports(self, study: str) -> dict[str, dict[str, str]]:
        """Return the sha256 of each file, by report folder of a study."""
        folders = sorted(self.report(study).parent.glob(f"{study}*"))
        return {
            folder.name: {
                str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(folder.rglob("*"))
                if path.is_file() and os.access(path, os.R_OK)
            }
            for folder in folders
        }

    def forget_a_run(self) -> None:
        """Delete the results of a run of the grid, so that a launch trains."""
        for key in stage_keys(self.study.runs()[0].config):
            Store(str(self.runs / "store")).delete(key)

    def forget_decoded(self) -> None:
        """Delete the decoded images, so that a launch decodes them again."""
        self.forget_a_run()
        self.decoded("image-folder").unlink()

    def partial(self) -> Path:
        """Return partly written decoded images of a killed process, which have to be made again."""
        former = self.decoded("image-folder")
        former.unlink()
        path = former.with_name(f"{former.stem.rpartition('-')[0]}.partial")
        path.write_bytes(b"half" * 100)
        return path

    def journal(self, database: str) -> Path:
        """Return the rollback journal of a database, of a finished transaction."""
        path = self.runs / f"{database}-journal"
        path.write_bytes(bytes(512))
        return path

    def artifact(self) -> Path:
        """Return the table of the grid in MLflow's artifacts."""
        table = (self.report() / "table.csv").read_bytes()
        found = (self.runs / "artifacts").glob("*/artifacts/table.csv")
        return next(path for path in sorted(found) if path.read_bytes() == table)

    def for_artifacts(self) -> Path:
        """Return a file that takes the place of the artifact folder."""
        path = self.runs / "artifacts"
        path.rename(path.with_name("moved"))
        path.write_bytes(b"no folder" * 10)
        return path


def _reseal(path: Path) -> None:
    """Write a manifest or failure as a version two formats later would."""
    content = json.loads(path.read_bytes()) | {"format": 3}
    del content["sha256"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    path.write_bytes(b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode() + text[1:])


def _add_fields(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2, "cluster": [1]}))


def _put_head(path: Path) -> None:
    """Change the beginning of a file that has no format number."""
    path.write_bytes(b"mixsweep format 2\n" + path.read_bytes())


def _move_on(path: Path) -> None:
    """Give a database the schema number of a later version."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")


def _nest(path: Path) -> None:
    path.write_text("[" * 100_000)


def _no_change(home: Home) -> None:
    """Leave the home unchanged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of file."""

    find: Callable[[Home], Path]
    study: str = GRID
    """Study of the commands that use the file."""
    newer: Damage | None = None
    """Function that gives the file a newer format."""
    other: Callable[[Home], Path] | None = None
    """Another file of the same kind."""
    is_json: bool = False
    before: Callable[[Home], None] = _no_change
    """Function that makes a command read the file."""
    healed: frozenset[str] = frozenset(DAMAGES) | {DEEP, OTHER}
    """Damages after which a launch succeeds, whatever other commands say."""
    is_verified: bool = False
    """True if `store verify` must detect the damage."""
    stands_for: bool = False
    """True if another content means another study, whose report may replace this one, which is
    moved.
    """

    @property
    def lacks_a_run(self) -> bool:
        """True if commands also find a run that is not stored."""
        return self.before is not _no_change

    def damages(self) -> Mapping[str, Damage]:
        """Return the possible damages, except replacement by another file of its kind."""
        deep = {DEEP: _nest} if self.is_json else {}
        newer = {} if self.newer is None else {NEWER: self.newer}
        return {**DAMAGES, **deep, **newer}


_BUT_FOLDERS = (frozenset(DAMAGES) | {DEEP, OTHER}) - {"a folder"}
"""Damages of a file that is replaced by renaming another file."""
_HARMLESS = frozenset(CONTENTS) | {"missing"}
"""Damages of a file whose content does not matter."""
_NEVER: frozenset[str] = frozenset()


def _lease(suffix: str, study: str = GRID) -> Callable[[Home], Path]:
    return lambda home: home.store(f"leases/{study}{suffix}")


def _reported(name: str, *, other: bool = True) -> Kind:
    return Kind(
        find=lambda home: home.report() / name,
        other=(lambda home: home.report(SEARCH) / name) if other else None,
        newer=_add_fields if name.endswith(".json") else None,
        is_json=name.endswith(".json"),
        healed=_BUT_FOLDERS,
    )


_KINDS: Mapping[str, Kind] = {
    "last manifest": Kind(
        find=lambda home: home.stage(0, 2), newer=_reseal, other=lambda home: home.stage(1, 2),
        is_json=True, is_verified=True,
    ),
    "intermediate manifest": Kind(
        find=lambda home: home.stage(0, 1), newer=_reseal, other=lambda home: home.stage(2, 1),
        is_json=True, is_verified=True,
    ),
    "state": Kind(
        find=lambda home: home.of_last_stage(0, "states/*/KEY-*.bin"), newer=_put_head,
        other=lambda home: home.of_last_stage(1, "states/*/KEY-*.bin"), is_verified=True,
    ),
    "predictions": Kind(
        find=lambda home: home.of_last_stage(0, "predictions/*/KEY.bin"), newer=_put_head,
        other=lambda home: home.of_last_stage(1, "predictions/*/KEY.bin"), is_verified=True,
    ),
    "failure": Kind(
        find=lambda home: home.store("failures/aa01.json"), newer=_reseal,
        other=lambda home: home.store("failures/aa02.json"), is_json=True, is_verified=True,
    ),
    "lease": Kind(
        find=_lease(".json"), newer=_add_fields, other=_lease(".json", SEARCH), is_json=True
    ),
    "lock of the lease": Kind(find=_lease(".lock"), other=_lease(".lock", SEARCH)),
    "progress": Kind(
        find=_lease(".progress.json"), newer=_add_fields,
        other=_lease(".progress.json", SEARCH), is_json=True,
    ),
    "stop": Kind(
        find=lambda home: home.store(f"stops/{GRID}.json"), newer=_add_fields,
        other=lambda home: home.store(f"stops/{SEARCH}.json"), is_json=True,
    ),
    "ledger": Kind(
        find=lambda home: home.store(f"studies/{GRID}/*.json"), newer=_add_fields,
        other=lambda home: home.store(f"studies/{SEARCH}/*.json"), is_json=True,
    ),
    "conclusion": Kind(
        find=lambda home: home.report().with_name(f".{GRID}.conclusion.json"),
        newer=_add_fields, is_json=True,
    ),
    "mlflow.db": Kind(
        find=lambda home: home.runs / "mlflow.db", newer=_move_on,
        other=lambda home: home.runs / "optuna.db", healed=frozenset({"missing", "empty"}),
    ),
    "lock of mlflow.db": Kind(find=lambda home: home.runs / "mlflow.db.lock", healed=_HARMLESS),
    "journal of mlflow.db": Kind(find=lambda home: home.journal("mlflow.db"), healed=_HARMLESS),
    "artifact": Kind(
        find=Home.artifact,
        healed=_HARMLESS,
    ),
    "folder of artifacts": Kind(find=Home.for_artifacts, healed=_NEVER),
    "optuna.db": Kind(
        find=lambda home: home.runs / "optuna.db", newer=_move_on, study=SEARCH,
        other=lambda home: home.runs / "mlflow.db", healed=_NEVER,
    ),
    "lock of optuna.db": Kind(
        find=lambda home: home.runs / "optuna.db.lock", study=SEARCH, healed=_HARMLESS
    ),
    "journal of optuna.db": Kind(
        find=lambda home: home.journal("optuna.db"), study=SEARCH, healed=_HARMLESS
    ),
    "image": Kind(
        find=lambda home: home.folder / "photos" / "train" / "cat" / "0.png",
        other=lambda home: home.folder / "photos" / "train" / "dog" / "0.png",
        healed=_NEVER, stands_for=True,
    ),
    "digests": Kind(
        find=lambda home: next((home.data / "digests").glob("*.json")), newer=_add_fields,
        is_json=True,
    ),
    "decoded data": Kind(
        find=lambda home: home.decoded("image-folder"), newer=_put_head,
        other=lambda home: home.decoded("digits"), before=Home.forget_a_run,
    ),
    "partial of decoded data": Kind(find=Home.partial, before=Home.forget_a_run),
    "lock of the data": Kind(
        find=lambda home: home.data / ".image-folder.lock", before=Home.forget_decoded
    ),
}  # fmt: skip
REPORTED = (
    "table.csv", "table.md", "table.tex", "runs.csv", "provenance.json", "report.html",
    "tables/verdicts.csv",
    *(
        f"tables/{name}.{kind}"
        for name in (
            "seeds", "calibration", "classes", "class_differences", "ensembles",
            "ensemble_sizes", "spread",
        )
        for kind in ("csv", "md")
    ),
    "figures/learning_curves.svg", "figures/learning_curves.png", "figures/learning_curves.csv",
    "figures/learning_curves.txt",
)  # fmt: skip
"""Files of the grid's report, with one figure."""
KINDS: Mapping[str, Kind] = {
    **_KINDS,
    **{f"{name} of the report": _reported(name) for name in REPORTED},
}
