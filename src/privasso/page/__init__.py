"""HTML pages in one file: text, tables and figures, without outside references."""

from privasso.page._page import Page

__all__ = ["Page"]
