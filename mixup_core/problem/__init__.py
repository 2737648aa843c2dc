"""Problem: a kind of run that a study can contain, and the parts that describe it."""

from mixup_core.problem.facets import (
    Axis,
    Comparing,
    Cost,
    HeldOut,
    Measuring,
    Metric,
    Presentation,
    Randomness,
    Reading,
    Searching,
    Series,
    Teacher,
    Teaching,
    spell_odd_name,
)
from mixup_core.problem.keying import Keying
from mixup_core.problem.problem import (
    DEFAULT_PROBLEM,
    PROBLEMS,
    Problem,
    all_data_needs,
    fields_apart,
    problem_named,
    problem_of,
    with_named_teacher,
)
from mixup_core.problem.process import (
    MAX_SEED,
    Config,
    DataError,
    DataNeeds,
    DataSet,
    DivergedError,
    Gradual,
    KnownData,
    OneRecord,
    Predicting,
    Process,
    Seed,
    StateError,
)

__all__ = [
    "DEFAULT_PROBLEM", "MAX_SEED", "PROBLEMS", "Axis", "Comparing", "Config", "Cost",
    "DataError", "DataNeeds", "DataSet", "DivergedError", "Gradual", "HeldOut", "Keying",
    "KnownData", "Measuring", "Metric", "OneRecord", "Predicting", "Presentation", "Problem",
    "Process", "Randomness", "Reading", "Searching", "Seed", "Series", "StateError", "Teacher",
    "Teaching", "all_data_needs", "fields_apart", "problem_named", "problem_of",
    "spell_odd_name", "with_named_teacher",
]  # fmt: skip
