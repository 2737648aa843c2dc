"""A tree of frozen dataclasses under dotted paths: what it is made of, flattened and built again.

A field holds a plain value, another dataclass (a group), or one of several dataclasses (a choice).
The dataclasses of a choice are told apart by a class variable:

    tag    The choice stands at its own path: `mix.law: beta`, `mix.law.alpha: 0.5`; written whole
           as `erm`, as `{beta: 0.5}` if it has one field, else as `{tag: {field: value, ...}}`.
    name   The choice is a group whose kind is one of its values: `optimizer.name: sgd`,
           `optimizer.lr: 0.1`; written whole as `{name: sgd, lr: 0.1}`.

In a list, one of the dataclasses may have neither: it is written as its fields.

Nothing here knows what the values mean.
"""
