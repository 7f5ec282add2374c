"""What all tests share: property tests try the same cases in every run, so that a failure is no matter of luck.

`HYPOTHESIS_PROFILE=search` looks for new cases instead; what it finds becomes an `@example`.
"""

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
