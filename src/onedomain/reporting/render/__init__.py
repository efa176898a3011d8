"""Renderers: the same tables in the terminal, as HTML, as Markdown, and as LaTeX. Data (CSV, JSON) is not rounded and
has more than a table shows: whoever has it writes it.

Each takes one table or several that stand below each other under the title of the first.
"""
