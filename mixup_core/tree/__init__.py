"""Configurations as trees of frozen dataclasses, addressed by dotted paths.

A field holds a plain value, another dataclass (a group), or one of several dataclasses (a choice).
A class variable identifies the dataclasses of a choice:

    tag    The choice is set at its own path: `mix.law: beta`, `mix.law.alpha: 0.5`. As a whole it
           is written `erm` if it has no fields, `{beta: 0.5}` if it has one, and
           `{tag: {field: value, ...}}` if it has more.
    name   The choice is a group, and one of its values selects the dataclass:
           `optimizer.name: sgd`, `optimizer.lr: 0.1`. As a whole it is written
           `{name: sgd, lr: 0.1}`.

In a list, one of the possible dataclasses may have neither `tag` nor `name`; it is written as a
mapping of its fields.

Nothing in this package depends on the meaning of the values.
"""
