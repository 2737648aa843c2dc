"""MathML: a Sphinx extension that writes formulas as MathML, so that pages need no script."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_CORRECTED = {
    '<mo accent="true">&#x02015;</mo>': '<mo accent="true" stretchy="true">&#x000AF;</mo>',
    "<mi>&#x0007E;</mi>": "<mo>&#x0223C;</mo>",
    "<mi>ln</mi>": '<mo lspace="0.167em" rspace="0.167em">ln</mo>',
}
"""Elements that latex2mathml writes, and better ones: browsers stretch a macron over a formula, but
no horizontal bar, and put space around `\\sim` and `\\ln` only if they are operators.
"""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer `mathml`; `html_math_renderer` of conf.py selects it."""
    app.add_html_math_renderer("mathml", (_write_inline, None), (_write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(formula: str, *, is_block: bool = False) -> str:
    """Return a LaTeX formula as MathML.

    Args:
        formula: The formula, without dollar signs.
        is_block: True for a formula with a line of its own.

    Raises:
        ValueError: If a LaTeX command of the formula is unknown.
    """
    known = re.sub(r"\\arg\b", r"\\operatorname{arg}", formula)  # latex2mathml has no \arg
    written = convert(known, display="block" if is_block else "inline")
    if "\\" in written:
        raise ValueError(f"no MathML is known for a command of the formula, got ({formula=}).")
    for old, new in _CORRECTED.items():
        written = written.replace(old, new)
    return written


def _write_inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _write_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(mathml(node.astext(), is_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode
