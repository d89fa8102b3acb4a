"""Lines of standard input, or of a file that may still grow."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from graspad.errors import InputError

_PAUSE = 0.1  # seconds until a file is looked at again


@dataclass
class Source:
    """Where lines come from: a file from a position on, or standard input.

    Of a file, a last line that has no end yet is waited for, unless `follow` is off: then it counts as it is.
    """

    file: Path | None
    follow: bool = True
    position: int = 0

    @property
    def lasting(self) -> bool:
        """Whether lines that were read once can be read again."""
        return self.file is not None

    def lines(self) -> Iterator[str | None]:
        """Each line without its end, as it comes; None while there is none."""
        return self._of_input() if self.file is None else self._of_file(self.file)

    def _of_input(self) -> Iterator[str | None]:
        for line in sys.stdin.buffer:
            yield _text(line)

    def _of_file(self, file: Path) -> Iterator[str | None]:
        while True:
            with _opened(file) as stream:
                yield from self._of_opened(stream, file)
            if not self.follow:
                return
            self.position = 0

    def _of_opened(self, stream: BinaryIO, file: Path) -> Iterator[str | None]:
        """Until the file ends, or, if it is followed, until there is another one of that name."""
        while True:
            stream.seek(self.position)
            while line := stream.readline():
                if not line.endswith(b"\n") and self.follow:
                    break
                self.position += len(line)
                yield _text(line)
            if not self.follow or _replaced(stream, file, self.position):
                return
            yield None
            time.sleep(_PAUSE)


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise InputError(f"The file {str(file)!r} cannot be read: {error.strerror or error}. Check the path.") from None


def _replaced(stream: BinaryIO, file: Path, position: int) -> bool:
    """Whether the name stands for another file now, or for one that was cut: it begins anew."""
    try:
        now = os.stat(file)
    except FileNotFoundError:
        return False  # between an old file and a new one
    old = os.fstat(stream.fileno())
    return (now.st_ino, now.st_dev) != (old.st_ino, old.st_dev) or now.st_size < position


def _text(line: bytes) -> str:
    return line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
