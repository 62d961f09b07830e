"""The unprivileged user that servers run as when Headway itself is started by root.

PostgreSQL refuses to run as root, and no server should. Nothing of the machine is opened to that
user: servers get a directory of their own and work in it by relative paths, so the directories
above it may stay closed.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

NAME = "nobody"
"""Exists everywhere, with an entry in passwd, which initdb asks for."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    name: str
    uid: int
    gid: int

    def own(self, place: Path | int) -> None:
        """Make this user the owner of one directory, or of an open file by its descriptor."""
        os.chown(place, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Whether `path` and all above it are open to everyone, hence to this user."""
        everyone = stat.S_IROTH | stat.S_IXOTH
        return path.stat().st_mode & everyone == everyone and all(
            above.stat().st_mode & stat.S_IXOTH for above in path.resolve().parents
        )


def server_user() -> ServerUser | None:
    """The user to run servers as; None when Headway's own user is unprivileged already."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(NAME)
    return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
