"""PromQL as the panels write it: ``{GROUP}`` for what the variables select, and what came of counters."""

from __future__ import annotations

import re

_CLUSTER = 'cluster=~"$cluster"'
_GROUP = f'{_CLUSTER},group=~"$group"'
_TOPIC = 'topic=~"$topic"'
#: What stands first between the braces of a selector, by the word for it.
_SELECTED = {
    "CLUSTER": _CLUSTER,
    "GROUP": _GROUP,
    "GROUP_TOPIC": f"{_GROUP},{_TOPIC}",
    "TOPIC": f"{_CLUSTER},{_TOPIC}",
}
_WORD = re.compile(r"{(" + "|".join(_SELECTED) + r")\b")


def promql(text: str) -> str:
    """Return an expression with the matchers that ``{CLUSTER``, ``{GROUP`` and their like stand for."""
    return _WORD.sub(lambda found: "{" + _SELECTED[found[1]], text)


def came(counter: str) -> str:
    """Return an expression for when a counter has grown within a minute, its first count included."""
    return f"{counter} > 0 unless {counter} offset 1m or changes({counter}[1m]) > 0"
