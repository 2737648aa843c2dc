"""Contracts: what the laws, operations, networks, ... of a run must return, checked as it trains.

A plugin can break a contract without an error: label weights above 1, for example, still train and
can give the best value of a table. `mixsweep check` and training call the same functions.
"""

from typing import Any

from mixup_core.arrays import Floats, Tensor, np, torch
from mixup_core.config.catalogue import catalogue_of, kind_name, origin_of
from mixup_core.config.written_forms import flatten
from mixup_core.rules import RuleError

_ROUNDING = 1e-5
"""Largest distance outside [0, 1] that counts as float32 rounding of a weight."""


class ContractError(Exception):
    """Error: a law, operation, network, ... returned what its base class forbids.

    The message names the plugin, the class, the values of its fields, and what it returned.
    """

    def __init__(self, part: Any, what: str) -> None:
        """Create the error."""
        super().__init__(_message(part, what))

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, so that the error can pass between processes."""
        return type(self).__new__, (type(self), *self.args)


def _message(part: Any, what: str) -> str:
    kind = type(part)
    fields = ", ".join(f"{path}={value!r}" for path, value in flatten(part).items())
    text = f"the {noun_of_class(kind)} {kind_name(kind)}{f' ({fields})' if fields else ''} {what}"
    if (origin := origin_of(kind)) is None:
        return text
    advice = f"correct it and try it with: mixsweep check {origin.plugin}"
    return f"plugin {origin.plugin}: {text}; {advice}"


def noun_of_class(kind: type) -> str:
    """Return the noun of a class that configurations name, such as `law` or `model`."""
    return next(owner.noun for owner in map(catalogue_of, kind.__mro__) if owner is not None)


def is_of_plugin(part: Any) -> bool:
    """Return True if a plugin defines the class of a law, operation, model, ..."""
    return origin_of(type(part)) is not None


def require_quantiles(law: Any) -> None:
    """Check that the quantiles of a law are in [0, 1] and do not decrease."""
    levels = np.linspace(0, 1, 65)
    found = np.asarray(law.quantiles(levels))
    origin = origin_of(type(law))
    whose = f"{f'plugin {origin.plugin}: ' if origin else ''}`quantiles` of the law {law.tag}"
    values = flatten(law)
    if found.shape != levels.shape:
        hint = f"it returned the shape {found.shape} for {levels.shape}"
        raise RuleError(f"{whose} must return one value per level", values, hint=hint)
    outside = [index for index, weight in enumerate(found) if not _are_weights(weight, weight)]
    if outside:
        first = f"it is {found[outside[0]]:g} at level {levels[outside[0]]:g}"
        hint = f"{first}; correct `quantiles`, or limit the fields of the law by their types"
        raise RuleError(f"{whose} must be in [0, 1]", values, hint=hint)
    falls = np.diff(found) < 0
    if falls.any():
        at = int(falls.argmax())
        pair = (f"{found[index]:g} at level {levels[index]:g}" for index in (at, at + 1))
        hint = f"they are {' and '.join(pair)}"
        raise RuleError(f"{whose} must not decrease with the level", values, hint=hint)


def weights_of(law: Any, shape: int | tuple[int, ...], rng: "np.random.Generator") -> "Floats":
    """Draw mixing weights from a law, float64."""
    drawn: Floats = law.draw(shape, rng)
    expected = (shape,) if isinstance(shape, int) else shape
    if getattr(drawn, "shape", None) != expected:
        got = getattr(drawn, "shape", type(drawn).__name__)
        raise ContractError(law, f"returned the shape {got} from `draw`, expected {expected}")
    if drawn.size and not _are_weights(low := drawn.min(), high := drawn.max()):
        worst = max((low, high), key=lambda weight: abs(weight - 0.5))
        raise ContractError(law, f"returned weights outside [0, 1] from `draw`, such as {worst:g}")
    return drawn


def require_mixed(operation: Any, own: "Tensor", mixed: Any, weight: Any) -> None:
    """Check shapes and types of a mixed batch; the values stay on the device."""
    got = tuple(getattr(mixed, "shape", ())), getattr(mixed, "dtype", type(mixed).__name__)
    if got != (tuple(own.shape), own.dtype):
        expected = f"{tuple(own.shape)} in {own.dtype}"
        raise ContractError(
            operation, f"returned images of shape {got[0]} in {got[1]}, expected {expected}"
        )
    shape, count = getattr(weight, "shape", None), len(own)
    if shape not in ((1,), (count,)):
        raise ContractError(
            operation,
            f"returned label weights of shape {shape and tuple(shape)}, expected ({count},)",
        )


def first_outside(weights: "list[Tensor]") -> tuple[int, float] | None:
    """Return (batch, value) of the first label weight outside [0, 1]; the host waits once."""
    low, high = torch.stack(torch.aminmax(torch.cat(weights))).tolist()
    if _are_weights(low, high):
        return None
    for batch, of in enumerate(weights):
        outside = of[~((of >= -_ROUNDING) & (of <= 1 + _ROUNDING))]
        if len(outside):
            return batch, outside[0].item()
    return None


def _are_weights(low: Any, high: Any) -> bool:
    return bool(low >= -_ROUNDING and high <= 1 + _ROUNDING)  # False for NaN
