"""How a setting is declared: a field of a frozen dataclass, with its bounds and what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, get_type_hints

_KEY = "setting"


class Limits(NamedTuple):
    """The bounds of a number, and of the length of a text or list; None: no bound."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None


class Declared(NamedTuple):
    """What a field's declaration says, besides its type and its default.

    ``read`` makes a value of the type out of what was given; ``check`` raises ValueError with what
    the value has to be, and isn't called for None.
    """

    description: str
    examples: Sequence[Any]
    name: str | None
    limits: Limits
    read: Callable[[object], object] | None
    check: Callable[[Any], None] | None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its ``name`` in a file, its type, its default, and what is declared of it."""

    name: str
    type: Any
    default: Any
    declared: Declared


def setting(
    default: object,
    description: str = "",
    *,
    examples: Sequence[object] = (),
    name: str | None = None,
    read: Callable[[object], object] | None = None,
    check: Callable[[Any], None] | None = None,
    shown: bool = True,
    **limits: float,
) -> Any:
    """Return a dataclass's field that is a setting.

    ``name``: its name in a file if that isn't the field's. ``read``, ``check``: as in ``Declared``.
    ``shown``: in the dataclass's ``repr``. ``limits``: as in ``Limits``.
    """
    declared = Declared(description, examples, name, Limits(**limits), read, check)  # type: ignore[arg-type]
    if isinstance(default, dict):
        return field(default_factory=dict, repr=shown, metadata={_KEY: declared})
    return field(default=default, repr=shown, metadata={_KEY: declared})


@cache
def settings_of(declaring: type) -> Mapping[str, Setting]:
    """Return the settings that a dataclass declares, by the field's name."""
    types = get_type_hints(declaring)
    found = {}
    for one in fields(declaring):
        declared: Declared | None = one.metadata.get(_KEY)
        if declared is not None:
            default = {} if one.default is MISSING else one.default
            name = declared.name or one.name
            found[one.name] = Setting(name, types[one.name], default, declared)
    return found
