"""The files of one PostgreSQL: made once, and looked at before each start.

Always holds: the data directory gets its name only when it is complete, so a first start that was
interrupted begins again.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

import psutil
from headway.coordinator.binaries import postgres_programs
from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, ServerError, start_process
from headway.coordinator.serveruser import ServerUser

MAJOR_VERSION = "18"
ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}

INITDB = (
    *("--encoding", "UTF8"),
    *("--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
    *("--auth", "scram-sha-256"),
    *("--pwfile", "/dev/stdin"),
    "--no-instructions",
)


def data_option(directory: Path, run_as: ServerUser | None) -> tuple[str, str]:
    """How a program is told its data directory, in which it is started.

    Another user may not be let through the directories above, and need not be.
    """
    return ("-D", "/proc/self/cwd" if run_as else str(directory))


async def make_files(
    directory: Path, log: LogFile, *, user: str, password: str, run_as: ServerUser | None
) -> None:
    """Make the data directory, with `user` as its superuser.

    Raises ServerError, with the last lines of the log, when initdb fails.
    """
    if run_as is None:
        _check_user_is_known()
    unfinished = _empty_directory_beside(directory, run_as)
    launch = Launch(
        argv=(
            str(postgres_programs(run_as) / "initdb"),
            *data_option(unfinished, run_as),
            *("--username", user),
            *INITDB,
        ),
        env=ENVIRONMENT,
        cwd=unfinished,
        run_as=run_as,
        stdin=f"{password}\n",
    )
    initdb = start_process(launch, log)
    try:
        status = await initdb.exited()
    finally:
        await initdb.kill()
    if status != 0:
        raise ServerError(f"initdb failed with status {status}:\n{log.tail()}")
    _put_in_place(unfinished, directory)


def check_version(directory: Path) -> None:
    """Raises ServerError when another major version of PostgreSQL made `directory`."""
    found = (directory / "PG_VERSION").read_text().strip()
    if found != MAJOR_VERSION:
        raise ServerError(
            f"{directory} was made by PostgreSQL {found}, and this is {MAJOR_VERSION}: "
            "dump it with the older version, or start anew in another data directory"
        )


def drop_misleading_pid(directory: Path) -> None:
    """Drop a dead server's pid file that is damaged, or whose pid another process has got.

    PostgreSQL would take that process for itself and not start. Any other pid file is left to
    PostgreSQL, which cleans up by it.
    """
    pid_file = directory / "postmaster.pid"
    if not pid_file.exists():
        return
    pid = pid_file.read_text().partition("\n")[0]
    if not pid.isdigit() or psutil.pid_exists(int(pid)):
        pid_file.unlink()


def _empty_directory_beside(directory: Path, run_as: ServerUser | None) -> Path:
    """A new one each time: an initdb that was killed may still be writing into the last one."""
    workshop = directory.with_name(f"{directory.name}-unfinished")
    shutil.rmtree(workshop, ignore_errors=True)
    workshop.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=workshop))
    if run_as:
        run_as.own(unfinished)
    return unfinished


def _put_in_place(unfinished: Path, directory: Path) -> None:
    unfinished.rename(directory)
    shutil.rmtree(unfinished.parent, ignore_errors=True)


def _check_user_is_known() -> None:
    """Raises ServerError when initdb would, as in a container run under a user id of nobody's."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError as error:
        raise ServerError(
            f"user id {os.geteuid()} has no entry in /etc/passwd, and PostgreSQL needs one to make "
            "its files: add one, run as another user or as root, or use servers of your own"
        ) from error
