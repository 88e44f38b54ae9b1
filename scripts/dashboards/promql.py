"""PromQL of the panels: ``{GROUP}`` stands for a variable's selection; the growth of counters."""

from __future__ import annotations

import re

_CLUSTER = 'cluster=~"$cluster"'
_GROUP = f'{_CLUSTER},group=~"$group"'
_TOPIC = 'topic=~"$topic"'
#: The matchers at the start of a selector, by the word that stands for them.
_SELECTED = {
    "CLUSTER": _CLUSTER,
    "GROUP": _GROUP,
    "GROUP_TOPIC": f"{_GROUP},{_TOPIC}",
    "TOPIC": f"{_CLUSTER},{_TOPIC}",
}
_WORD = re.compile(r"{(" + "|".join(_SELECTED) + r")\b")


def promql(text: str) -> str:
    """Return an expression with ``{CLUSTER``, ``{GROUP`` and similar words replaced by matchers."""
    return _WORD.sub(lambda found: "{" + _SELECTED[found[1]], text)


def came(counter: str) -> str:
    """Return an expression for a counter's growth within a minute, its first count included."""
    return f"{counter} > 0 unless {counter} offset 1m or changes({counter}[1m]) > 0"
