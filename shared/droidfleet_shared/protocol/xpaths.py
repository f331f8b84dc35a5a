"""XPath selectors: whether an expression is XPath 1.0, gives nodes, and costs no more than a screen can bear.

libxml2 evaluates without a time limit, so the cost is bounded beforehand. Steps to children and attributes look at each
node once; every other way through the tree (a *walk*: `//`, `..`, ancestors, siblings, following, preceding) may look
at all nodes, and a walk in a predicate is repeated for each node that the predicate is tried on.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_REPEATED_WALKS = 2
"""How many walks may multiply: 2 are at most (nodes * nodes) visits, 25 million on a screen of 5,000 nodes."""

MAX_WALKS = 8
"""Walks in one expression, multiplied or not."""

MAX_PREDICATE_DEPTH = 2
"""Predicates within predicates."""

_FUNCTIONS = re.compile(
    """boolean|ceiling|concat|contains|count|false|floor|last|local-name|name|normalize-space|not|number|position|round|
    starts-with|string|string-length|substring|substring-after|substring-before|sum|translate|true|node|text""",
    re.VERBOSE,
)
"""XPath 1.0's functions and node tests; `id`, `lang` and `namespace-uri` have no use in a window's tree."""

_FREE_AXES = frozenset({"child", "self", "attribute"})
_TOKEN = re.compile(
    r"""(?P<text>"[^"]*"|'[^']*') | (?P<axis>[\w-]+(?=\s*::)) | (?P<call>[\w.-]+(?=\s*\())
    | (?P<prefix>[\w.-]+:(?=[\w*])) | (?P<word>[\w.-]*\w[\w.-]*) | (?P<sign>//|\.\.|\S)""",
    re.VERBOSE | re.DOTALL,
)
_GIVES_NO_NODES = re.compile(r"(?:(?:@|\battribute\s*::)\s*[\w*.-]+|\btext\s*\(\s*\))\s*$")
_SAMPLE = '<hierarchy rotation="0"><node index="0" text="a" class="b" bounds="[0,0][1,1]">c</node></hierarchy>'


@lru_cache(maxsize=256)
def xpath_problem(expression: str) -> str:
    """Why the expression is not accepted, as a clause for a message; empty when it is accepted."""
    # Costs 10 MB and 20 ms at import: only tasks that use xpath pay for it.
    from lxml import etree  # noqa: PLC0415

    try:
        compiled = etree.XPath(expression, regexp=False)
    except (etree.XPathSyntaxError, ValueError) as error:  # ValueError: a control character
        return f"it is not XPath 1.0 ({error})"
    if problem := _cost_problem(expression):
        return problem
    if _GIVES_NO_NODES.search(expression):
        return "it gives an attribute or a text; it must give nodes"
    try:
        found = compiled(etree.fromstring(_SAMPLE))
    except etree.XPathError as error:
        return f"it cannot be evaluated ({error})"
    if not isinstance(found, list) or not all(etree.iselement(each) for each in found):
        return "it gives a value, a text or an attribute; it must give nodes"
    return ""


def _cost_problem(expression: str) -> str:
    """The first word that is not accepted, or the bound that the expression breaks."""
    walks = 0
    levels = [0]  # walks that are repeated for each other, for the expression and each predicate that is open
    for token in _TOKEN.finditer(expression):
        match token.lastgroup:
            case "call" if not _FUNCTIONS.fullmatch(token[0]):
                return f"the function `{token[0]}` is not one of XPath 1.0 that are accepted"
            case "prefix":
                return f"the prefix `{token[0]}` names no namespace; a window's tree has none"
            case "axis" if token[0] not in _FREE_AXES:
                walks += 1
                levels[-1] = levels[-1] + 1 if token[0] in {"following", "preceding"} else max(levels[-1], 1)
            case "sign":
                if token[0] == "$":
                    return "it uses a variable (`$`), and there are none"
                if token[0] in {"//", ".."}:
                    walks += 1
                    levels[-1] = max(levels[-1], 1)
                elif token[0] == "[":
                    levels.append(0)
                elif token[0] == "]":
                    levels.pop()
        if sum(levels) > MAX_REPEATED_WALKS or walks > MAX_WALKS or len(levels) > MAX_PREDICATE_DEPTH + 1:
            return (
                f"it may take too long on a large screen; at most {MAX_WALKS} walks through it (`//`, `..`, axes), "
                f"{MAX_REPEATED_WALKS} within each other, predicates at most {MAX_PREDICATE_DEPTH} deep"
            )
    return ""
