"""Self-contained HTML pages: text, tables and figures in one file without outside references."""

from privasso.page._page import Page

__all__ = ["Page"]
