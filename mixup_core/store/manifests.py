"""Manifests: what is stored of a stage and of a failure, as JSON that states its own sha256."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from mixup_core.packed import Packed, packed
from mixup_core.records import EpochRecord, Records
from mixup_core.store.errors import StoreError, UnreadableError
from mixup_core.store.names import checked

FORMAT = 1
"""Raised when the content of a manifest changes its meaning. How a manifest carries its sha256
never changes, so that one of a newer format can be told from a damaged one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochFacts:
    """What is true of one training of an epoch but not of the computation; no key contains it."""

    seconds: float
    """Wall seconds of training and evaluating the epoch."""
    stored_at_ms: int
    """Unix time in ms at which the epoch was first stored; the timestamp of its MLflow points."""


class Facts(Packed[EpochFacts]):
    """Facts of the epochs of a stage, at 16 bytes each."""

    __slots__ = ("seconds", "stored_at_ms")

    def __init__(self, facts: Iterable[EpochFacts] = ()) -> None:
        """Keep the facts of some epochs."""
        facts = tuple(facts)
        self.seconds = packed([fact.seconds for fact in facts])
        """Of each epoch (`EpochFacts.seconds`)."""
        self.stored_at_ms = packed([fact.stored_at_ms for fact in facts])
        """Of each epoch (`EpochFacts.stored_at_ms`)."""

    def __len__(self) -> int:
        return len(self.seconds)

    def _at(self, place: int) -> EpochFacts:
        return EpochFacts(seconds=self.seconds[place], stored_at_ms=self.stored_at_ms[place])


@dataclass(frozen=True, kw_only=True, slots=True)
class StateRef:
    """Which file holds a state."""

    sha256: str
    """Of the whole file, as `sha256sum` prints it."""
    size: int
    """Bytes of the whole file."""


@dataclass(frozen=True, kw_only=True, slots=True, init=False)
class Stage:
    """The first epochs of every run that has this stage key."""

    key: str
    records: Records
    """One per epoch, epoch 0 first."""
    facts: Facts
    """One per epoch, as `records`."""
    environment: Mapping[str, str]
    """Host, device, versions, threads: what else can change bits, as the writer gave it."""
    state: StateRef | None
    """State after the last of these epochs; None when only the records are kept."""

    def __init__(
        self,
        *,
        key: str,
        records: Iterable[EpochRecord],
        facts: Iterable[EpochFacts],
        environment: Mapping[str, str],
        state: StateRef | None,
    ) -> None:
        """Keep records and facts packed: stages are held by the ten thousand."""
        fields = {
            "key": key,
            "records": records if isinstance(records, Records) else Records(records),
            "facts": facts if isinstance(facts, Facts) else Facts(facts),
            "environment": environment,
            "state": state,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def epochs(self) -> int:
        """Number of epochs trained."""
        return len(self.records)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a run ended before its last epoch."""

    run_key: str
    kind: Literal["diverged", "failed"]
    """`diverged`: the loss left the finite numbers, as it would again. `failed`: anything else."""
    message: str
    epoch: int | None
    """0-based epoch that was being trained; None if none had begun."""
    attempts: int
    """How often the run was tried."""


class FormatError(StoreError):
    """The store was written by a newer version of this program."""


def check_epochs(records: Sequence[EpochRecord], facts: Sequence[EpochFacts]) -> None:
    """Check what is to be stored of a stage.

    Raises:
        ValueError: If records or facts are not one per epoch, or a number is not finite.
    """
    epochs = [record.epoch for record in records]
    if not epochs or epochs != list(range(len(epochs))):
        raise ValueError(f"`one record per epoch, epoch 0 first` must hold, got ({epochs=}).")
    if len(facts) != len(records):
        raise ValueError(
            f"`one facts per record` must hold, got (records={len(records)}, facts={len(facts)})."
        )
    for record, fact in zip(records, facts, strict=True):
        for name, value in {**record.metrics, "seconds": fact.seconds}.items():
            if not math.isfinite(value):
                raise ValueError(
                    f"`{name} is finite` must hold, got (value={value}, epoch={record.epoch})."
                )


def state_header(key: str) -> bytes:
    """Return what a state's file begins with: it binds the content to its stage."""
    return f"mixsweep state of stage {checked(key)}\n".encode()


def state_ref(blob: bytes) -> StateRef:
    """Return the reference to the file of a state, from its content."""
    return StateRef(sha256=hashlib.sha256(blob).hexdigest(), size=len(blob))


def stage_content(stage: Stage) -> dict[str, Any]:
    """Return what the manifest of a stage says, to be sealed."""
    return {
        "key": stage.key,
        "records": [record.to_plain() for record in stage.records],
        "facts": [dataclasses.asdict(facts) for facts in stage.facts],
        "environment": stage.environment,
        "state": None if stage.state is None else dataclasses.asdict(stage.state),
    }


def seal(content: Mapping[str, Any]) -> bytes:
    """Return canonical JSON with its own sha256 put in front of the other keys."""
    text = json.dumps(
        {"format": FORMAT, **content}, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return _prefix(text.encode()) + text.encode()[1:]


def unseal(sealed: bytes) -> dict[str, Any] | None:
    """Return the content `seal` was given and its format; None if a single bit differs."""
    if not _is_sealed(sealed):
        return None
    try:
        content: dict[str, Any] = json.loads(b"{" + sealed[len(_prefix(b"")) :])
    except (ValueError, RecursionError):
        return None  # sealed by somebody else
    return content if isinstance(content.get("format"), int) else None


def _is_sealed(sealed: bytes) -> bool:
    return sealed.startswith(_prefix(b"{" + sealed[len(_prefix(b"")) :]))


def is_manifest(sealed: bytes | UnreadableError, key: str) -> bool:
    """Return whether bytes are surely the manifest of a stage in this format, without parsing.

    In canonical JSON the two fields stand side by side, unless a later version put one between.
    """
    fields = b'"format":%d,"key":"%s",' % (FORMAT, key.encode())
    return isinstance(sealed, bytes) and fields in sealed and _is_sealed(sealed)


NOT_AS_WRITTEN = (KeyError, TypeError, ValueError, AttributeError)
"""What the content of a file raises that somebody else sealed."""

_Built = TypeVar("_Built", EpochFacts, StateRef, Failure)


def built(kind: type[_Built], plain: Mapping[str, Any]) -> _Built:
    """Return a value from the fields it has; those that a later version added are ignored."""
    return kind(**{field.name: plain[field.name] for field in dataclasses.fields(kind)})


def _prefix(text: bytes) -> bytes:
    return b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode()
