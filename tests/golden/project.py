"""All imports of the golden tests from the project: the only place to change when modules move."""

# ruff: noqa: F401

from mixup_core.config.building import parsed, with_values
from mixup_core.config.catalogue import catalogue_of, kind_name
from mixup_core.config.parts import REQUIRED, members, parts
from mixup_core.config.written_forms import SpellingError, flatten, spelled, spellings
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.batches import Draws
from mixup_core.images.choices.models import Model
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.fetching import data_root
from mixup_core.images.data.folder_facts import FolderFacts
from mixup_core.images.data.folders import describe
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.probes.probe import Probe
from mixup_core.images.training import fit
from mixup_core.images.training_state import TrainingState
from mixup_core.images.views import TrainingImages
from mixup_core.keys import run_key, stage_keys
from mixup_core.laws import Law
from mixup_core.laws.schedules import Schedule
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import Partner
from mixup_core.problem import PROBLEMS, problem_named
from mixup_core.rules import RuleError
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.study.search import confirming
