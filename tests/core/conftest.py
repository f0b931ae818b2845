"""Rules in milliseconds; all that is shared is the profile of the property tests."""

from __future__ import annotations

import tests.support  # noqa: F401 - for its profile
