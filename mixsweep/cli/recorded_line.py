"""Recorded line: a command line as messages and records show it, without secrets."""

import shlex
from typing import Any

import click
from click.core import ParameterSource

from mixup_core.addresses import HIDDEN, without_secrets

_RECORDED = {"--set", "--arms", "--metric", "--gpus-per-run", "--plugin"}
"""Options whose free text never contains a secret. Recorded command lines show their values."""


def command_line() -> str:
    """Return the current command line, with values hidden that may contain a secret.

    The value of a free-text option, such as an address or a shell command, is hidden, unless the
    option is one whose values never contain a secret, such as `--arms`.
    """
    context = click.get_current_context()
    names = [context.info_name or ""]
    while (context.parent is not None) and (context.parent.parent is not None):
        context = context.parent
        names.insert(0, context.info_name or "")
    context = click.get_current_context()
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        is_typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not is_typed or name not in context.params:
            continue
        value = context.params[name]
        if not isinstance(parameter, click.Option):
            arguments += map(str, value if parameter.nargs != 1 else (value,))
        elif parameter.is_flag:
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for each in value if parameter.multiple else (value,):
                parts = each if parameter.nargs != 1 else (each,)
                options += [parameter.opts[0], *(_recorded(parameter, part) for part in parts)]
    return shlex.join(["mixsweep", *names, *arguments, *options])


def _recorded(option: click.Option, value: Any) -> str:
    """Return the value of an option as text; hidden if it may contain a secret."""
    if isinstance(option.type, click.types.StringParamType) and option.opts[0] not in _RECORDED:
        return HIDDEN
    return f"{value:g}" if isinstance(value, float) else without_secrets(str(value))
