"""Loading: a plugin is registered completely or not at all.

Its hash is in every key that it affects.
"""

import inspect
import sys
from typing import Any

import pytest

from mixup_core.config.building import built, with_values
from mixup_core.config.catalogue import origin_of
from mixup_core.config.written_forms import flatten, origins_in, plugins_of
from mixup_core.images.choices.models import Model, in_full
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.sets import DATA_NAMES
from mixup_core.images.metrics import METRICS
from mixup_core.keys import run_key, stage_keys
from mixup_core.plugins.loading import load, use
from mixup_core.plugins.source import PluginError, read_source
from mixup_core.problem import PROBLEMS, problem_named, problem_of
from tests.interpreters import run_python
from tests.plugin_files import DOTS, HALVING, LATE, MARGIN, TINY, Write

PROBE_OF = """
@value
class Of(Probe):
    tag = "of"
    metrics = {{"{}": Metric(label="of")}}
    def measure(self, subject):
        return {{}}
"""
UNTOLD = """
class Untold(Exception):
    def __str__(self):
        raise ValueError
raise Untold
"""
NESTED = """
@value
class Inner:
    of_what = 3
""" + TINY.replace("width: Count = 8", "width: Count = 8\n    inner: Inner | None = None")


BESIDE = """
import sys
from pathlib import Path
folder = Path(__file__).parent
(folder / "constants.py").write_text("X = 1")
sys.path.insert(0, str(folder))
"""
OPERATION = """
@value
class Own(Operation):
    tag = "{}"
    def mix(self, own, beside, lam, drawn):
        return own, lam
"""
TWO_UNTAGGED = """
@value
class First:
    x: int = 1
@value
class Second:
    y: int = 1
""" + TINY.replace("width: Count = 8", "width: First | Second = First()")


def _config(**values: Any) -> TrainConfig:
    return built(TrainConfig, {"data.name": "digits", "epochs": 2, "batch_size": 50} | values)


def test_the_digest_of_a_plugin_changes_only_keys_of_configurations_that_use_it(
    plugin: Write,
) -> None:
    use(plugin(TINY, MARGIN, DOTS))
    own = [{"model.name": "tiny"}, {"probes": ("margin",)}, {"data.name": "dots"}]
    plain = run_key(_config())
    before = [run_key(_config(**values)) for values in own]
    use(plugin(TINY, MARGIN, DOTS, "np.geterr()  # may change anything"))
    after = [run_key(_config(**values)) for values in own]
    assert len({*before, *after}) == 6
    assert run_key(_config()) == plain


def test_a_plugin_objective_changes_only_the_stage_keys_of_its_own_epochs(
    plugin: Write,
) -> None:
    use(plugin(LATE))
    before, plain = stage_keys(_config(objective="late")), stage_keys(_config())
    use(plugin(LATE, "np.geterr()  # may change anything"))
    after = stage_keys(_config(objective="late"))
    assert before[0] == after[0] == plain[0]
    assert len({before[1], after[1], plain[1]}) == 3


def test_metrics_of_a_plugin_may_begin_like_those_of_corrupted_images(plugin: Write) -> None:
    use(plugin(MARGIN.replace("train/", "test_far/")))
    config = _config(probes=("margin",))
    assert problem_of(config).measuring.lacks(config, "test_far/margin", 1) is None


def test_a_model_of_a_plugin_that_extends_a_built_in_one_is_another_network(plugin: Write) -> None:
    own = (
        "@value\nclass Own(Mlp):\n    name = 'own'\n    def network(self, *_):\n        return 0\n"
    )
    use(plugin("from mixup_core.images.choices.models import Mlp\n", own))
    model = _config(model={"name": "own", "hidden": []}).model
    assert in_full(model) == model


def test_origins_in_returns_the_plugins_that_a_configuration_uses(plugin: Write) -> None:
    use(plugin(TINY, MARGIN, DOTS))
    values = {"model.name": "tiny", "probes": ("margin",), "data.name": "dots"}
    config = _config(**values)
    (origin,) = origins_in(config)
    assert flatten(config)["data.name"] == "dots" != flatten(config, brief=True)["data.name"]
    assert plugins_of(config) == {"tiny.py": origin.digest[:16]}
    assert origins_in(with_values(_config(), {"seed": 3})) == ()
    each = [origins_in(_config(**{path: value})) for path, value in values.items()]
    assert len({origin.digest, *(alone.digest for (alone,) in each)}) == 4
    assert each[0] == (origin_of(type(config.model)),)


def test_a_run_of_a_plugin_problem_trains_and_an_edit_changes_its_keys(plugin: Write) -> None:
    assert use(plugin(HALVING)).names == ("problem halving",)
    before = [built(problem_named("halving").config, {"start": start}) for start in (1.0, 2.0)]
    process = problem_of(before[1]).start(before[1], None, "cpu")
    assert [record.metrics["value"] for record in process] == [1.0, 0.5, 0.25]
    keys = [run_key(config) for config in before]
    assert list(plugins_of(before[0])) == ["tiny.py"]
    use(plugin(HALVING.replace("/ 2 **", "/ 3 **")))
    after = [built(problem_named("halving").config, {"start": start}) for start in (1.0, 2.0)]
    assert {run_key(config) for config in after}.isdisjoint(keys)


def test_loading_an_edited_plugin_replaces_its_earlier_entries(plugin: Write) -> None:
    use(plugin(TINY, MARGIN))
    old = Model.catalogue["tiny"]
    with pytest.raises(PluginError, match="fails"):
        use(plugin(TINY, "1 / 0"))
    assert Model.catalogue["tiny"] is old, "a file that cannot be run changes nothing"
    use(plugin(TINY.replace("Count = 8", "Count = 9")))
    assert built(TrainConfig, {"model.name": "tiny", "epochs": 1, "batch_size": 1}).model.width == 9  # type: ignore[attr-defined]
    assert "train/margin" not in METRICS
    assert use(plugin(TINY)) == use(plugin(TINY))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", r"fails in line 9: ZeroDivisionError: division by zero"),
        ("import tiny", "fails in line 17: ModuleNotFound.*cannot import files of its folder"),
        (BESIDE + "import constants", "imports constants from its own folder; edits of"),
        ("import beside_me", "No module named 'beside_me'; install it on "),
        ("x = '\\0'; raise ValueError(x + chr(10) + chr(27))", r"ValueError: \\x00\\n\\x1b$"),
        (UNTOLD, r"fails in line 21: Untold: \(the text of this error cannot be produced"),
        ("x = 1", "defines no entry; define a public class that extends a class of"),
        (TINY.replace('"tiny"', '"mlp"'), "the model mlp exists already and cannot be replaced"),
        (OPERATION.format("mixup"), "mixup could be mistaken for the built-in operation linear"),
        (DOTS.replace('"dots"', '"mnist"', 1), "the dataset mnist exists already"),
        (TINY.replace("width: Count = 8", "width = 8"), "width of Tiny .the model tiny. has no"),
        (NESTED, "of_what of Inner .the model tiny. has no type"),
        (TINY.replace("Count = 8", "Count = 'x'"), "default of `width` .* expected an int"),
        (TINY.replace("Count", "int | bool"), "width of the model tiny accepts numbers of two ty"),
        (TINY.replace("Count = 8", "tuple[int, int] = (1, 2)"), "is a tuple of fixed length"),
        (TWO_UNTAGGED, "the model tiny accepts two dataclasses"),
        (TINY + TINY.replace("class Tiny", "class Other"), "entries to add are called model"),
        (DOTS.replace("std=(.2,)", "std=(.2, .3)"), "has 1 channels, 1 values of `mean` and 2"),
        (DOTS.replace("std=(.2,)", "std=(0.,)"), "a value of `std` that is not above 0"),
        (DOTS.replace("read=read", 'read=read, files={"train": {}}'), "has `files` of train; list"),
        (DOTS.replace("read=read", 'read=read, files={"train": {"a.npy": ""}, "test": {}}'),
         "the dataset dots has no valid checksum of its file a.npy; write `sha256:`"),
        (HALVING.replace('"halving"', '"moons"'), "the problem moons exists already"),
        (HALVING.replace('= "halving"', '= "other"', 1), "both must be equal"),
        (HALVING.replace('{"value": M', '{"value!": M'), "halving: no metric can have .* 'value!'"),
        (PROBE_OF.format("share (%)"), "`metrics` of Of: no metric can have the name text 'share"),
        (PROBE_OF.format("test/error"), "Of declares test/error, which another measurement"),
        (LATE.replace("start:", "metrics = {'train/loss': Metric(label='loss')}\n    start:"),
         "`metrics` of Late declares train/loss, which another"),
    ],
)  # fmt: skip
def test_an_invalid_plugin_is_refused_and_adds_no_entry(
    plugin: Write, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    models, names, problems = list(Model.catalogue), list(DATA_NAMES), dict(PROBLEMS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "constants", raising=False)
    with pytest.raises(PluginError, match=f"^plugin tiny.py: .*{message}"):
        use(plugin(code) if code in {"x = 1", "1 / 0"} else plugin(MARGIN, code))
    assert (list(Model.catalogue), list(DATA_NAMES), dict(PROBLEMS)) == (models, names, problems)
    assert "train/margin" not in METRICS


def test_the_output_of_a_plugin_goes_to_standard_error(
    plugin: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    use(plugin(TINY, "print('loaded')"))
    assert capsys.readouterr() == ("", "loaded\n")


def test_class_constants_are_not_fields(plugin: Write) -> None:
    more = "    LEAST = 1\n    _cache = {}\n    most: ClassVar = 3\n    @property\n"
    twice = "    def twice(self):\n        return 2 * self.width\n"
    tiny = "from typing import ClassVar\n" + TINY + more + twice
    assert use(plugin(tiny)).names == ("model tiny",)


def test_the_source_lines_of_a_plugin_are_found_after_its_file_is_deleted(plugin: Write) -> None:
    """A worker has only the bytes of the file; schemas read the docstrings of fields."""
    file = plugin(TINY)
    source = read_source(file)
    file.unlink()
    load(source)
    assert "Hidden units." in inspect.getsource(Model.catalogue["tiny"])


def test_a_plugin_is_loaded_without_torch(plugin: Write) -> None:
    script = (
        "import sys; from mixsweep.plugins import use; print(use(sys.argv[1])); "
        "assert 'torch' not in sys.modules and 'ray' not in sys.modules"
    )
    file = plugin(TINY, MARGIN, DOTS, LATE)
    run_python(script, file, check=True)
