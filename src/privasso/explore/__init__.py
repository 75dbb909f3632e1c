"""A page in the browser that shows what noise costs and buys, live or from a table."""

from privasso.explore._answers import answer
from privasso.explore._server import Explorer
from privasso.explore._settings import MOST_COLUMNS, Settings, settings_of
from privasso.explore._static import static_page

__all__ = ["MOST_COLUMNS", "Explorer", "Settings", "answer", "settings_of", "static_page"]
