"""Configurations as trees of frozen dataclasses, addressed by dotted paths.

A field holds a plain value, another dataclass (a group), or one of several dataclasses (a choice).
The dataclasses of a choice have a class variable, `tag` or `name`, by which study files select one:

    tag    The path of the choice selects the dataclass: `mix.law: beta`. Longer paths set its
           fields: `mix.law.alpha: 0.5`. Dataclass and fields together are written `erm` if there
           are no fields, `{beta: 0.5}` if there is one, and `{tag: {field: value, ...}}` if there
           are more.
    name   The path that ends in `name` selects the dataclass: `optimizer.name: sgd`. The other
           paths of the group set its fields: `optimizer.lr: 0.1`. Dataclass and fields together
           are written `{name: sgd, lr: 0.1}`.

In a list, one of the possible dataclasses may have neither `tag` nor `name`; it is written as a
mapping of its fields.

Nothing in this package depends on the meaning of the values.
"""
