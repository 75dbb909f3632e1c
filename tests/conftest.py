"""Settings shared by all tests."""

from hypothesis import settings

# The same examples on every run, so that a failure is a change in the code and never luck; no
# deadline, because the first call into a compiled kernel takes seconds.
settings.register_profile("privasso", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("privasso")
