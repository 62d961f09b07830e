"""How many cores this process may use: by its affinity, and by the quota of its container."""

from __future__ import annotations

import math
import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # as a container sees its own, cgroup v2: microseconds


def cores(quota: Path = QUOTA) -> int:
    """At least one. A quota that cannot be read is none."""
    affine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(affine or 1, _by_quota(quota)))


def _by_quota(quota: Path) -> int:
    try:
        allowed, period = quota.read_text().split()
        return math.ceil(int(allowed) / int(period))
    except (OSError, ValueError):  # there is none, or it is "max"
        return os.cpu_count() or 1
