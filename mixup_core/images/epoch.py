"""Epoch: what decides one epoch of training beyond what every epoch of a run shares."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from mixup_core.images.objectives.objective import Objective
from mixup_core.images.objectives.plain import Plain
from mixup_core.laws import Erm, Law
from mixup_core.tree.written_forms import spelled


@dataclass(frozen=True, kw_only=True, slots=True)
class Epoch:
    """What decides one epoch of training: keys of stages hash it, and training receives it.

    Training and probes read it in the place of `config.mix` and `config.objective`, so that nothing
    decides an epoch without a trace in its key. A field enters the key where it differs from its
    default: a new one needs a default under which the numbers stay what they were.
    """

    law: Law = field(default_factory=Erm)
    """The law in force."""
    lam_scope: Literal["batch", "sample"] = "batch"
    """As `mix.lam_scope`; the default where nothing is mixed."""
    partner: Literal["dataset", "permutation"] = "dataset"
    """As `mix.partner`; the default where nothing is mixed."""
    objective: Objective = field(default_factory=Plain)
    """The objective in force."""
    rate: Any = None
    """What decides the factors of the learning rate, as JSON; None: they are all 1."""

    @property
    def is_mixed(self) -> bool:
        """Whether partners are mixed in."""
        return self.law != Erm()

    @property
    def key(self) -> Any:
        """The epoch as JSON. Its form is that of the first version, so that old keys stay."""
        mixing: Any = "erm"
        if self.is_mixed:
            mixing = [spelled(self.law, brief=True), self.lam_scope, self.partner]
        usual = Epoch()
        beyond = {
            part.name: spelled(getattr(self, part.name), brief=True)
            for part in fields(self)
            if part.name not in {"law", "lam_scope", "partner"}
            and getattr(self, part.name) != getattr(usual, part.name)
        }
        return {"mixing": mixing, **beyond} if beyond else mixing
