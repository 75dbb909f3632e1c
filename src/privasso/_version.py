"""The version of the package; the changelog has a section for each."""

__version__ = "0.1.0"
