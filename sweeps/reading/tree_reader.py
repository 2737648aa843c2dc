"""TreeReader: read nested dataclasses from a study file, and collect all faults of the file."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import islice
from operator import attrgetter
from typing import Any, get_args, get_origin

from mixup_core.config.building import parsed
from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import members, parts, unmarked
from mixup_core.config.written_forms import SpellingError
from mixup_core.plugins.stand_ins import REGISTERS
from mixup_core.problem import DataError
from mixup_core.rules import RuleError, shown
from sweeps.reading.strict_yaml import REFUSED, At, Document, Refused, holds_refused
from sweeps.reading.study_keys import range_hint
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, blamed

_MOST_NAMED = 8
"""Largest number of arms that a message lists."""
MAX_HINTS = 20
"""Number of faults after which messages suggest no similar names, because finding them is slow."""

_LONGEST_LIST = 80
"""Longest list of accepted names, in characters, that a message has without `--all`."""
_LONGEST_FORMS = 200
"""Longest description of accepted values that have no names."""
ALL = "`mixsweep plan --all`"
"""Command that lists accepted values in full."""
PLUGIN = "--plugin"
"""Option that loads a plugin; messages about unknown names suggest it."""


class TreeReader:
    """Reads values of a study file into a nested dataclass; reports and skips faulty values."""

    def __init__(
        self,
        document: Document,
        paths: TreePaths,
        elsewhere: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._elsewhere = elsewhere
        self.document = document
        self.faults = document.faults
        self.paths = paths

    def report(
        self, at: At, text: str, word: str = "", known: Iterable[str] = (), noun: str = ""
    ) -> None:
        """Add a fault, with the known word most similar to a wrong one, or how to load a plugin."""
        self.document.report(at, f"{text}{self._hint(word, known)}{_spell_plugin(noun)}")

    def report_spelling(self, at: At, error: SpellingError, word: str, noun: str) -> None:
        """Add a fault for a value of the wrong type or name; long lists of values are shortened."""
        end = _spell_plugin(error.noun or (noun if word else ""))
        hint = self._hint(word, error.names)
        whole = f"{error}{range_hint(at, word)}{hint}{end}"
        longest = _LONGEST_LIST if error.names else _LONGEST_FORMS
        if len(error.expected) <= longest:
            self.document.report(at, whole)
            return
        path = f"{error.path}: " if error.path else ""
        brief = named(word, error.names) or f"{error.expected[:longest]} ..."
        expected = f"expected {brief} ({ALL} shows how to write each)"
        self.document.report(at, f"{path}got {shown(error.value)}{hint}; {expected}{end}", whole)

    def _hint(self, word: str, known: Iterable[str]) -> str:
        return did_you_mean(word, known) if word and len(self.faults) < MAX_HINTS else ""

    def mapping(self, value: Any, at: At) -> Mapping[str, Any]:
        """Check that a value is a mapping and return it; otherwise report a fault and return {}."""
        if not isinstance(value, dict | Refused):
            self.report(at, f"expected a mapping, got {shown(value)}")
        return value if isinstance(value, dict) else {}

    def filled(self, value: Any, at: At, what: str) -> Mapping[At, Any]:
        """Return the items of a list, by path in the file; an empty list or no list is a fault."""
        if value is not REFUSED and not (isinstance(value, list) and value):
            self.report(at, f"expected a list of at least one {what}, got {shown(value)}")
        items = value if isinstance(value, list) else ()
        return {(*at, number): item for number, item in enumerate(items)}

    def value(self, hint: Any, value: Any, at: At, noun: str = "") -> Any:
        """Return a value converted to a type (`object`: unchanged); `REFUSED` after a fault."""
        if hint is object:
            return value
        kinds = [member for member in members(hint) if member is not type(None)]
        plain = [kind for kind in kinds if is_dataclass(kind) and not kind_name(kind)]
        is_one = len(kinds) == 1 and value is not None
        if plain and (is_one or _has_fields_of(plain[0], value, kinds)):
            kind: Any = plain[0]
            before = len(self.faults)
            tree, gone = TreeReader(self.document, TreePaths(kind)).section(value, at)
            return REFUSED if gone or len(self.faults) > before else tree
        lists = [kind for kind in map(unmarked, members(hint)) if get_origin(kind) is tuple]
        if lists and isinstance(value, list):
            item, _ = get_args(lists[0])
            items = tuple(self.value(item, part, (*at, n)) for n, part in enumerate(value))
            return REFUSED if any(part is REFUSED for part in items) else items
        try:
            return REFUSED if holds_refused(value) else parsed(hint, value)
        except SpellingError as error:
            if isinstance(error.value, bool | int | float) and "expected text" in str(error):
                self.report(at, f"{error}; quote it")
            else:
                word = error.value if isinstance(error.value, str) else ""
                self.report_spelling(at, error, word, noun)
        except RuleError as error:
            self.report(at, str(error))
        return REFUSED

    def section(self, value: Any, at: At) -> tuple[Any, frozenset[str]]:
        """Build this reader's dataclass from a mapping in the study file; report every fault."""
        return self.joined([self.nested(value, at)], at)

    def joined(self, levels: Sequence[Settings], at: At) -> tuple[Any, frozenset[str]]:
        """Build this reader's dataclass from several levels of settings; report every fault."""
        chosen = self.paths.chosen(levels)
        values = {path: setting.value for path, setting in chosen.items()}
        for name in self.paths.required:
            if name not in values:
                self.report(at, f"missing key {name!r}")
        tree, gone, errors = self.paths.join(values)
        for error in errors:
            self.blame(error, levels, at)
        for path, setting in chosen.items():
            if setting.needs is not None and tree is not None and path not in gone:
                choice, tag = setting.needs
                if (kind := kind_name(attrgetter(choice)(tree))) != tag:
                    self.report(setting.at, f"{choice} must be {tag}, but it is {kind or 'null'}")
        return tree, gone

    def blame(self, error: RuleError | DataError, levels: Sequence[Settings], at: At) -> None:
        """Report a broken rule, line by line, at the most specific setting that it involves."""
        setting = blamed(error, levels)
        missing = (*at, *(error.fields[0].split(".") if error.fields else ()))
        for line in str(error).split("\n"):
            self.report(missing if setting is None else setting.at, line)

    def nested(
        self, value: Any, at: At, prefix: str = "", *, is_dotted: bool = False
    ) -> dict[str, Setting]:
        """Read settings from a mapping such as `{mix: {law: erm}}`, or dotted: `{mix.law: erm}`."""
        leaves = self.paths.leaves
        if not isinstance(value, dict):
            self.mapping(value, at)
            refused = Setting(value=REFUSED, at=at)
            return {path: refused for path in leaves if path.startswith(prefix)}
        settings: dict[str, Setting] = {}
        for key, part in value.items():
            written, part_at, part_settings = f"{prefix}{key}", (*at, key), dict[str, Setting]()
            path = self.paths.short(written)
            if path in self.paths.groups and (isinstance(part, dict) or not is_dotted):
                part_settings = self.nested(self._by_name(part, path), part_at, f"{path}.")
            elif path in leaves:
                part_settings[path] = self.setting(written, part, part_at)
            elif is_dotted:
                self.known(written, part_at)
            else:
                self._report_unknown(key, prefix, part_at)
            for twice in part_settings.keys() & settings.keys():
                self.report(part_at, f"{twice} is given twice")
            settings |= part_settings
        return settings

    def _by_name(self, value: Any, path: str) -> Any:
        """Return `{name: timm, architecture: A}` for the short form `{timm: {architecture: A}}`."""
        leaf = self.paths.leaves.get(f"{path}.name")
        if leaf is None or not isinstance(value, dict) or len(value) != 1:
            return value
        ((name, content),) = value.items()
        is_whole = name in leaf.part.options and f"{path}.{name}" not in self.paths.leaves
        return {"name": name, **content} if is_whole and isinstance(content, dict) else value

    def setting(self, written: str, value: Any, at: At) -> Setting:
        """Convert a value for the field `written`, such as `mix.law.beta.alpha`; keep its place."""
        path = self.paths.short(written)
        part, reserved = self.paths.leaves[path].part, self.paths.reserved
        for tag, content in value.items() if part.options and isinstance(value, dict) else ():
            for key in content if isinstance(content, dict) else ():
                if (inside := f"{path}.{key}") in reserved:
                    self.report((*at, tag, key), reserved[inside])
        is_kind = isinstance(value, str) and value in part.options
        converted = value if is_kind else self.value(part.hint, value, at, part.noun)
        needs = None if path == written else self.paths.tagged[written][1]
        return Setting(value=converted, at=at, needs=needs)

    def known(self, path: str, at: At) -> str:
        """Return the path, without tags, of a field that can be set; else report a fault."""
        if (short := self.paths.short(path)) in self.paths.leaves:
            return short
        if path in self.paths.reserved:
            self.report(at, self.paths.reserved[path])
        elif path in self.paths.groups:
            inside = [leaf for leaf in self.paths.leaves if leaf.startswith(f"{path}.")]
            text = f"{path} is a group of values; write one of"
            whole = f"{text} {', '.join(inside)}"
            self.document.report(at, f"{text} {named(path, inside)}", whole)
        else:
            hint = self._other_name(path) or self._hint(path, self.paths.leaves)
            self.report(at, f"unknown path{hint}")
        return ""

    def _report_unknown(self, key: str, prefix: str, at: At) -> None:
        path, leaves = f"{prefix}{key}", self.paths.leaves
        if path in self.paths.reserved:
            self.report(at, f"{key!r} {self.paths.reserved[path]}")
        else:
            inside = [name.removeprefix(prefix) for name in leaves if name.startswith(prefix)]
            siblings = dict.fromkeys(name.partition(".")[0] for name in inside)
            hint = self._other_name(path) or self._hint(key, siblings) or self._hint(path, leaves)
            self.report(at, f"unknown key {key!r}{hint}")

    def _other_name(self, path: str) -> str:
        name = path.rpartition(".")[2]
        suggestion = self.paths.other_names.get(name) or self._elsewhere().get(path)
        return f" (did you mean {suggestion}?)" if suggestion else ""


def _spell_plugin(noun: str) -> str:
    return f"; if a plugin defines this {noun}, add {PLUGIN} FILE" if noun in REGISTERS else ""


def _has_fields_of(kind: Any, value: Any, kinds: Sequence[Any]) -> bool:
    """Return True if a value maps fields of a dataclass; False for a tag such as `{beta: 0.5}`."""
    has_tags = any(is_dataclass(member) and kind_name(member) for member in kinds)
    names = {part.name for part in parts(kind)}
    return isinstance(value, dict) and (not has_tags or not names.isdisjoint(value))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` with a similar word, or word at the end of a path; else empty."""
    known = list(islice(known, 1000))
    by_tail = {path.rpartition(".")[2]: path for path in reversed(known)}
    nearest = difflib.get_close_matches(word, known, n=1) or [
        by_tail[tail] for tail in difflib.get_close_matches(word.rpartition(".")[2], by_tail, n=1)
    ]
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def named(word: str, known: Iterable[str]) -> str:
    """Return the 8 known words that are most similar, and the number of the others."""
    known = list(known)
    if len(known) <= _MOST_NAMED:
        return ", ".join(known)
    likeness = {name: difflib.SequenceMatcher(None, name, word).ratio() for name in known[:1000]}
    near = sorted(likeness, key=likeness.__getitem__, reverse=True)[:_MOST_NAMED]
    nearest = [name for name in known[:1000] if name in near]
    return f"{', '.join(nearest)} and {len(known) - len(nearest)} more"
