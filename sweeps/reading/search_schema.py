"""The JSON Schema of the section `search` of a study file, for editors."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from mixup_core.problem import MAX_SEED
from sweeps.reading.config_paths import LAW_PATHS, schema_of
from sweeps.reading.search_reader import MAX_POINTS, MAX_SAMPLER_SEED, OBJECTIVES
from sweeps.reading.space_reader import FIXED
from sweeps.search import SamplerName, SelectionRule


def search_schema(paths: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of the section `search`.

    Args:
        paths: Dotted paths that may be searched.
    """
    number = {"type": "number"}
    when = {
        "description": "Exists only where an earlier parameter has this value, or one of these.",
        "type": "object",
        "minProperties": 1,
    }

    def kind(name: str, given: Mapping[str, Any], **options: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": False,
            "required": [name],
            "properties": {name: given, "when": when, **options},
        }

    def bounds(of: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "array", "items": of, "minItems": 2, "maxItems": 2}

    count = {"description": "Values of a grid.", "type": "integer", "minimum": 2}
    ranges = [
        kind("log_uniform", bounds({"type": "number", "exclusiveMinimum": 0}), values=count),
        kind("uniform", bounds(number), values=count),
        kind("int", bounds({"type": "integer"}), step={"type": "integer", "minimum": 1}),
    ]

    def chosen(item: Mapping[str, Any]) -> dict[str, Any]:
        return kind("categorical", {"type": "array", "items": item, "minItems": 1})

    def distribution(path: str) -> dict[str, Any]:
        return {"oneOf": [*ranges, chosen(schema_of(path))]}

    alpha = {"oneOf": [*ranges, chosen(number), {"type": "number", "exclusiveMinimum": 0}]}
    beta = {
        "type": "object",
        "properties": {"beta": alpha},
        "required": ["beta"],
        "additionalProperties": False,
    }
    law = {"oneOf": [beta, chosen({"oneOf": [{"enum": ["erm", "midpoint"]}, beta]})]}
    searched = [path for path in paths if path not in FIXED]
    seed = {"type": "integer", "minimum": 0, "maximum": MAX_SEED}
    limit = {"type": "number", "exclusiveMinimum": 0}
    objective = {"enum": list(OBJECTIVES)}
    return {
        "description": "A space that Optuna searches beside the arms, on validation images alone.",
        "type": "object",
        "additionalProperties": False,
        "required": ["space", "objective"],
        "properties": {
            "space": {
                "description": "Dotted path to the values it may take.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": {
                    path: law if path in LAW_PATHS else distribution(path) for path in searched
                },
            },
            "points": {
                "description": "Points to try; a grid takes all of its own.",
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_POINTS,
            },
            "objective": {
                "description": "Minimised; several give a Pareto front.",
                "oneOf": [
                    objective,
                    {"type": "array", "items": objective, "minItems": 1, "uniqueItems": True},
                ],
            },
            "sampler": {"enum": list(get_args(SamplerName)), "default": "tpe"},
            "seed": {
                "description": "Of the sampler.",
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_SAMPLER_SEED,
            },
            "prune": {
                "description": "Seeds after which a point clearly worse than the best is left.",
                "type": ["object", "null"],
                "additionalProperties": False,
                "required": ["after"],
                "properties": {"after": {"type": "integer", "minimum": 2}},
            },
            "budget": {
                "description": "When no more points are asked for.",
                "type": ["object", "null"],
                "additionalProperties": False,
                "properties": {"hours": limit, "gpu_hours": limit},
            },
            "select": {
                "description": "How the point to confirm is chosen.",
                "enum": list(get_args(SelectionRule)),
                "default": "val-mean",
            },
            "confirm": {
                "description": "Trains the winner and the arms on train + val, tests them once.",
                "type": ["object", "null"],
                "additionalProperties": False,
                "required": ["seeds"],
                "properties": {
                    "seeds": {"type": "array", "items": seed, "minItems": 1, "uniqueItems": True}
                },
            },
        },
    }
