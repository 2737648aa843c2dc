"""All imports of the golden tests from the project: the only place to change when modules move."""

from mixup_core.config.catalogue import catalogue_of
from mixup_core.config.parts import REQUIRED, members, parts
from mixup_core.config.written_forms import flatten, spelled
from mixup_core.images.data.datasets import load
from mixup_core.images.data.fetching import data_root
from mixup_core.images.training import fit
from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import PROBLEMS, problem_named
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.study.search import confirming

__all__ = [
    "PROBLEMS",
    "REQUIRED",
    "bundled_names",
    "catalogue_of",
    "confirming",
    "data_root",
    "fit",
    "flatten",
    "load",
    "load_study",
    "members",
    "parts",
    "problem_named",
    "run_key",
    "spelled",
    "stage_keys",
]
