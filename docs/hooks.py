"""What mkdocs and griffe are told to do beside turning pages into HTML."""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert

HELP = "<!-- the help of every command -->"
FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.DOTALL)
LOADED = re.compile(r"""(?:\bsrc=|<link[^>]*\bhref=|\burl\(|@import\s)\s*["']?(https?:)?//[^"')\s]+""")
PARAMETERS = re.compile(r"(?<=Parameters\n----------\n).*?(?=\n\n|\Z)", re.DOTALL)
EXAMPLES = "\n\nExamples\n--------\n>>> "

log = logging.getLogger("mkdocs.hooks.bemf")


# -- pages -------------------------------------------------------------------------------------------


def on_config(config: Any) -> None:
    """Puts every decision into the navigation, behind their list."""
    folder = Path(config.docs_dir, "decisions")
    *_, decisions = (section for section in config.nav if "Decisions" in section)
    decisions["Decisions"] = [
        f"decisions/{page.name}" for page in (folder / "README.md", *sorted(folder.glob("[0-9]*")))
    ]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts the help of the command line where a page asks for it."""
    return markdown.replace(HELP, _help()) if HELP in markdown else markdown


def _help() -> str:
    from bemf.cli import COMMANDS

    parts = [f"```text\n{_help_of()}```"]
    parts += [f"## bemf {name}\n\n```text\n{_help_of(name)}```" for name in COMMANDS]
    return "\n\n".join(parts)


def _help_of(*command: str) -> str:
    arguments = [sys.executable, "-m", "bemf", *command, "--help"]
    return subprocess.run(arguments, capture_output=True, text=True, check=True, env={"COLUMNS": "80"}).stdout


def on_page_content(html: str, **_: Any) -> str:
    """Sets formulas as MathML, which browsers know without a script."""

    def mathml(found: re.Match[str]) -> str:
        formula = unescape(found[2])
        return (
            convert(formula) if found[1] == "span" else f"<div class=formula>{convert(formula, display='block')}</div>"
        )

    return FORMULA.sub(mathml, html)


def on_post_build(config: Any) -> None:
    """Warns of whatever a page would load from the network."""
    for file in sorted(Path(config.site_dir).rglob("*")):
        if file.suffix in (".html", ".css"):
            for found in LOADED.finditer(file.read_text(encoding="utf-8")):
                log.warning("%s loads %s", file.relative_to(config.site_dir), found[0])


# -- docstrings --------------------------------------------------------------------------------------


class House(griffe.Extension):
    """Docstrings and constructors as they are written here, in the form that griffe knows."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = numpydoc(obj.docstring.value)

    def on_class(self, *, cls: Any, **_: Any) -> None:
        """A constructor that is made of fields is not in the source."""
        from bemf.hyperparameters import Configured

        module, _dot, name = cls.path.rpartition(".")
        if cls.parent.is_module and "__init__" not in cls.members:
            made = getattr(importlib.import_module(module), name)
            if issubclass(made, Configured) and made is not Configured:
                cls.set_member("__init__", _constructor(made))


def numpydoc(docstring: str) -> str:
    """Examples under a heading of their own, and what a parameter is below its name."""
    below = PARAMETERS.sub(
        lambda found: re.sub(r"^(\w[\w, ]*) : ", r"\1\n    ", found[0], flags=re.MULTILINE), docstring
    )
    return re.sub(r"(?:\A|\n\n)>>> ", EXAMPLES, below, count=1)


def _constructor(made: type) -> Any:
    parameters = [
        griffe.Parameter(
            each.name,
            annotation=str(each.annotation),
            kind=griffe.ParameterKind.keyword_only,
            default=repr(each.default),
        )
        for each in inspect.signature(made).parameters.values()
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(griffe.Parameter("self"), *parameters))
