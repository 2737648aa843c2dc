"""Manifests: JSON files that describe a stage or a failed run, and the names of all files."""

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mixup_core.records import EpochRecord, Packed, Records, packed
from mixup_core.store.errors import StoreError
from mixup_core.store.json_records import (
    Key,
    Line,
    Lines,
    Natural,
    RecordError,
    Seconds,
    Sha256,
    Time,
)

ADDED = "added"
"""Key in the environment of a stage that `mixsweep add` brought; its value is the sha256 of the
archive, the Unix time in ms, and who added it (`sweeps.state.results.Addition`)."""

# Frozen: names of files and JSON keys in this file, and the result of `seal`. After a change,
# stored results cannot be read; tests/contracts/test_homes.py fails.
FORMAT = 1
"""Version of the format of manifests. Raise it when the meaning of their content changes.

The way in which a manifest contains its sha256 never changes, so that a manifest of a newer
version can be distinguished from a damaged one.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochFacts:
    """Duration of an epoch and the time at which it was stored; no key depends on them."""

    seconds: Seconds
    """Wall-clock seconds of training and evaluating the epoch."""
    stored_at_ms: Time
    """Unix time in ms at which the epoch was first stored; MLflow shows this time for its metrics.
    """


class Facts(Packed[EpochFacts]):
    """Sequence of the `EpochFacts` (times) of a stage's epochs, packed in 16 bytes per epoch."""

    __slots__ = ("seconds", "stored_at_ms")

    def __init__(self, facts: Iterable[EpochFacts] = ()) -> None:
        """Pack the times and dates of the given epochs."""
        facts = tuple(facts)
        self.seconds = packed([fact.seconds for fact in facts])
        """Seconds of each epoch (`EpochFacts.seconds`)."""
        self.stored_at_ms = packed([fact.stored_at_ms for fact in facts])
        """Time at which each epoch was stored (`EpochFacts.stored_at_ms`)."""

    def __len__(self) -> int:
        return len(self.seconds)

    def _at(self, place: int) -> EpochFacts:
        return EpochFacts(seconds=self.seconds[place], stored_at_ms=self.stored_at_ms[place])


@dataclass(frozen=True, kw_only=True, slots=True)
class StateRef:
    """Checksum and size of the file with a stage's state, that is, its model and optimizer."""

    sha256: Sha256
    """sha256 of the whole file, as `sha256sum` prints it."""
    size: Natural
    """Size of the whole file in bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """Stored results of the first epochs of a run; runs with the same stage key share them."""

    key: Key
    records: Records
    """One record per epoch, epoch 0 first."""
    facts: Facts
    """Duration of each epoch and the time at which it was stored."""
    environment: Mapping[str, Lines]
    """Host, device, versions, threads and other settings that can change results in the last bits.
    """
    state: StateRef | None
    """Reference to the state after the last epoch; None if only the records are kept."""

    def __post_init__(self) -> None:
        """Pack records and facts, so that tens of thousands of stages fit in memory."""
        for name, packing in (("records", Records), ("facts", Facts)):
            if not isinstance(given := getattr(self, name), packing):
                object.__setattr__(self, name, packing(given))

    @property
    def epochs(self) -> int:
        """Number of epochs in the stage."""
        return len(self.records)

    @property
    def state_name(self) -> str | None:
        """Name of the file with the state of this stage; None if no state is kept."""
        return None if self.state is None else state_name(self.key, self.state.sha256)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """The reason why a run ended before its last epoch."""

    run_key: Key
    kind: Literal["diverged", "failed"]
    """`diverged`: the loss became infinite or NaN, so a retry would fail too; `failed`: any other
    cause.
    """
    message: Line
    epoch: Natural | None
    """Epoch (0-based) in which the run failed; None if it failed before the first epoch."""
    attempts: Natural
    """Number of attempts made so far."""
    trace: Lines = ""
    """Traceback, if the message alone does not explain the failure."""


class FormatError(StoreError):
    """Error: a newer version of this program wrote a file of the store."""


def check_epochs(records: Sequence[EpochRecord], facts: Sequence[EpochFacts]) -> None:
    """Check that each epoch has one record and one `EpochFacts`, with finite numbers."""
    epochs = [record.epoch for record in records]
    if not epochs or epochs != list(range(len(epochs))):
        raise RecordError(f"there must be one record per epoch, epoch 0 first, got ({epochs=}).")
    if len(facts) != len(records):
        raise RecordError(
            "each record needs the time of its epoch (`EpochFacts`), "
            f"got (records={len(records)}, facts={len(facts)})."
        )
    for record, fact in zip(records, facts, strict=True):
        for name, value in {**record.metrics, "seconds": fact.seconds}.items():
            if not math.isfinite(value):
                raise RecordError(
                    f"{name} must be finite, got (value={value}, epoch={record.epoch})."
                )


def state_header(key: str) -> bytes:
    """Return the first bytes of a state file, which contain the key of its stage."""
    return f"mixsweep state of stage {checked(key)}\n".encode()


def state_ref(blob: bytes) -> StateRef:
    """Return checksum and size of a state file with the given content."""
    return StateRef(sha256=hashlib.sha256(blob).hexdigest(), size=len(blob))


def stage_content(stage: Stage) -> dict[str, Any]:
    """Return what a stage's manifest contains, as a mapping; `seal` turns it into JSON."""
    return {
        "key": stage.key,
        "records": [record.to_plain() for record in stage.records],
        "facts": [dataclasses.asdict(facts) for facts in stage.facts],
        "environment": stage.environment,
        "state": None if stage.state is None else dataclasses.asdict(stage.state),
    }


def seal(content: Mapping[str, Any]) -> bytes:
    """Return a mapping as canonical JSON whose first key is the sha256 of the rest."""
    text = json.dumps(
        {"format": FORMAT, **content}, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return _prefix(text.encode()) + text.encode()[1:]


def unseal(sealed: bytes) -> dict[str, Any] | None:
    """Return the mapping in JSON that `seal` wrote; None if the JSON does not match its sha256."""
    if not _is_sealed(sealed):
        return None
    try:
        content: dict[str, Any] = json.loads(b"{" + sealed[len(_prefix(b"")) :])
    except (ValueError, RecursionError):
        return None  # another program wrote a valid checksum
    return content if isinstance(content.get("format"), int) else None


def _is_sealed(sealed: bytes) -> bool:
    return sealed.startswith(_prefix(b"{" + sealed[len(_prefix(b"")) :]))


def is_manifest(sealed: bytes, key: str) -> bool:
    """Return True if bytes are a stage's undamaged manifest (JSON file); they are not parsed.

    Their sha256 must be right, and the fields `format` and `key` must be side by side, as this
    program writes them. If a later version puts a field between them, the result is False for an
    undamaged manifest, too.
    """
    fields = b'"format":%d,"key":"%s",' % (FORMAT, key.encode())
    return fields in sealed and _is_sealed(sealed)


def _prefix(text: bytes) -> bytes:
    return b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode()


STUDY_NAME = r"[a-z0-9][a-z0-9-]{0,99}"
_SHARDED = r"(?P<shard>[0-9a-f]{2})/(?P<key>(?P=shard)[0-9a-f]{2,62})"
MANIFEST_NAME = re.compile(rf"stages/{_SHARDED}\.json")
STATE_NAME = re.compile(rf"states/{_SHARDED}-[0-9a-f]{{64}}\.bin")
PREDICTION_NAME = re.compile(rf"predictions/{_SHARDED}\.bin")
FAILURE_NAME = re.compile(r"failures/(?P<key>[0-9a-f]{4,64})\.json")
_NOTE_NAME = re.compile(
    rf"studies/{STUDY_NAME}/([0-9a-f]+|statements)\.json"
    r"|data/[0-9a-f]+\.json"
    rf"|(leases|stops|uses)/{STUDY_NAME}(\.progress)?\.json"
    rf"|claims/[0-9a-f]{{4,64}}\.{STUDY_NAME}\.[0-9]+"
)
_NAMES = (MANIFEST_NAME, STATE_NAME, PREDICTION_NAME, FAILURE_NAME, _NOTE_NAME)
_TEMPORARY = re.compile(r"\.[a-z0-9_]{8}\.tmp$")
"""End of a file's name while it is written."""


def checked(key: str) -> str:
    """Return a key unchanged after checking that it is safe in a path."""
    if not re.fullmatch(r"[0-9a-f]{4,64}", key):
        raise ValueError(f"a key must be 4 to 64 lower-case hexadecimal digits, got ({key=}).")
    return key


def manifest_name(key: str) -> str:
    """Return the file name of a stage's manifest (its JSON file), from the stage key."""
    return f"stages/{checked(key)[:2]}/{key}.json"


def key_in(name: str) -> str:
    """Return the stage key with which the name of a manifest, state or temporary file begins."""
    return name.rpartition("/")[2].partition(".")[0].partition("-")[0]


def is_temporary(name: str) -> bool:
    """Return True if a name is that of a file of the store, not another's, while it is written."""
    complete = _TEMPORARY.sub("", name)
    return complete != name and any(pattern.fullmatch(complete) for pattern in _NAMES)


def state_name(key: str, sha256: str) -> str:
    """Return the file name of a state, from the stage key and the sha256 of the file."""
    return f"states/{checked(key)[:2]}/{key}-{sha256}.bin"


def failure_name(run_key: str) -> str:
    """Return the file name of a run's failure, from the run key."""
    return f"failures/{checked(run_key)}.json"


def prediction_name(key: str) -> str:
    """Return the file name of a finished run's predictions, from the last stage key of the run."""
    return f"predictions/{checked(key)[:2]}/{key}.bin"
