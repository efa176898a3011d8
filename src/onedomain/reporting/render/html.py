"""Tables of a web page."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from onedomain.reporting.table import MARKS, Table, one_line

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup


@lru_cache(maxsize=1)
def _template() -> Template:
    return template("onedomain.reporting.render", "table.html", one_line)


def as_html(table: Table) -> Markup:
    """A figure with the table, and its notes below; safe to be put into a page."""
    from markupsafe import Markup

    return Markup(_template().render(table=table, marks=MARKS))


def _lines(text: str) -> str:
    return "\n".join(map(one_line, text.split("\n")))


def template(package: str, name: str, shown: Callable[[str], str] = _lines) -> Template:
    """A template from a package's folder `templates`, where `as_html` shows a table.

    `shown` takes out of a text what a screen would obey.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,  # names of domains, classes and folders are the user's
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: shown(value) if type(value) is str else value,
    )
    environment.filters["as_html"] = as_html
    return environment.get_template(name)
