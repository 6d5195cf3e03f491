"""Runs a program that answers each line of JSON with one, and restarts it after a crash or a time limit."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

LIMIT = 120.0  # of an answer [s]


class Program:
    """A program that answers questions.

    Args:
        command: its words.
    """

    def __init__(self, command: Sequence[str]):
        self.command, self.process, self.lines = command, None, queue.Queue()

    def ask(self, question: dict[str, Any], limit: float = LIMIT) -> dict[str, Any]:
        """Returns the answer; `{"error": ...}` after a crash or the time limit [s]."""
        if self.process is None:
            self._start()
        assert self.process is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=limit)
        except (BrokenPipeError, queue.Empty) as error:
            line = "" if isinstance(error, BrokenPipeError) else None
        if line:
            return json.loads(line)
        self.stop()
        return {"error": f"no answer within {limit:g} s" if line is None else "the process crashed"}

    def stop(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.lines = queue.Queue()
        threading.Thread(target=_read, args=(self.process.stdout, self.lines), daemon=True).start()


def _read(stream: Any, lines: queue.Queue) -> None:
    """Puts the lines of a stream into a queue, and "" after the last."""
    for line in stream:
        lines.put(line)
    lines.put("")
