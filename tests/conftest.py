"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("bemf", deadline=None, derandomize=True, database=None)
settings.load_profile("bemf")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on real ratings are skipped where there are none."""
    folder = os.environ.get("BEMF_DATA", "")
    if folder and Path(folder, "ml1m.parquet").exists():
        return
    reason = f"BEMF_DATA, {folder or 'which is not set'}, is no folder with the real ratings"
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(pytest.mark.skip(reason=reason))
