"""What a person sees while the demo runs: a bar of tasks, and a line for each kill."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Self

from headway.demo.killer import Killed, Returned
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Narration:
    """Writes to `console`, which is standard error; a context manager around the run.

    The bar counts `things`.
    """

    def __init__(self, console: Console, things: str = "orders") -> None:
        self._console = console
        self._statuses: Counter[str] = Counter()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[outcomes]}"),
            console=console,
        )
        self._bar = self._progress.add_task(things, total=None, outcomes="", visible=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """One line about what happens now."""
        self._console.print(text, soft_wrap=True)

    def begin(self, total: int) -> None:
        """Show the bar, with `total` to come."""
        self._progress.reset(self._bar, total=total, visible=True)

    def task_filed(self) -> None:
        """One more task is under way."""
        self._statuses["open"] += 1
        self._refresh()

    def task_settled(self, status: str) -> None:
        """A task has ended, or has been parked."""
        self._statuses["open"] -= 1
        self._statuses[status] += 1
        self._refresh()

    def one_done(self) -> None:
        """Nothing more happens to one of them by itself."""
        self._progress.advance(self._bar)

    def tell(self, happened: Killed | Returned) -> None:
        """A kill, or the return of who was killed."""
        what = "SIGKILL" if isinstance(happened, Killed) else "back"
        self.say(f"{happened.at_s:6.1f} s  {what:7}  {happened.victim}, process {happened.pid}")

    def _refresh(self) -> None:
        words = [f"{count} {status}" for status, count in sorted(self._statuses.items()) if count]
        self._progress.update(self._bar, outcomes=", ".join(words).replace("_", " "))
