"""Renderers: the same tables in the terminal, as HTML, as Markdown, as LaTeX, and as data (CSV, JSON).

Each takes one table or several that stand below each other under the title of the first.
"""
