"""Lines of standard input, of a pipe, or of a file that may still grow."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from graspad.errors import InputError

_PAUSE = 0.1  # seconds until a file is looked at again


@dataclass(frozen=True)
class Line:
    """A line without its end, the place in its file after it, and whether it is the first one of a file."""

    text: str
    place: Place | None = None
    first: bool = False


@dataclass(frozen=True)
class Place:
    """Up to where which file has been read, and the length and check sum of the line that ends there.

    A file that takes the same name later is another one: it has another line there, or none.
    """

    file: str
    position: int
    length: int
    check: int

    @classmethod
    def after(cls, file: Path, position: int, line: bytes) -> Place:
        """The place after a line that ends at `position`."""
        return cls(str(file.resolve()), position, len(line), crc32(line))

    def found_in(self, stream: BinaryIO) -> bool:
        """Whether this is the file that was read."""
        stream.seek(self.position - self.length)
        return crc32(stream.read(self.length)) == self.check


@dataclass
class Source:
    """Where lines come from: a file from a place on, or standard input.

    Of a file, a last line that has no end yet is waited for, unless `follow` is off: then it counts as it is.
    """

    file: Path | None
    follow: bool = True
    begin: Place | None = None

    @property
    def lasting(self) -> bool:
        """Whether lines that were read once can be read again."""
        return self.file is not None and (self.file.is_file() or not self.file.exists())

    def go_on(self, saved: dict[str, Any]) -> None:
        """Go on from a saved place; of another file than that one nothing has been read yet."""
        place = Place(**saved)
        if self.file is not None and place.file != str(self.file.resolve()):
            raise InputError(f"It belongs to a watch of {place.file!r}, not of {str(self.file)!r}")
        self.begin = place

    def lines(self) -> Iterator[Line | None]:
        """Each line as it comes; None while there is none."""
        if self.file is None:
            return _of_pipe(sys.stdin.buffer)
        return self._of_file(self.file) if self.lasting else _of_named_pipe(self.file)

    def _of_file(self, file: Path) -> Iterator[Line | None]:
        while True:
            with _opened(file) as stream:
                yield from self._of_opened(stream, file)
            if not self.follow:
                return

    def _of_opened(self, stream: BinaryIO, file: Path) -> Iterator[Line | None]:
        """Until the file ends, or, if it is followed, until there is another one of that name."""
        begin, self.begin = self.begin, None
        position = begin.position if begin is not None and begin.found_in(stream) else 0
        while True:
            stream.seek(position)
            line = b""
            while line := stream.readline():
                if not line.endswith(b"\n") and self.follow:
                    break
                first, position = position == 0, position + len(line)
                yield Line(_text(line), Place.after(file, position, line), first)
            if not self.follow:
                return
            if _replaced(stream, file, position):
                if line:  # nobody will end it now
                    yield Line(_text(line), Place.after(file, position + len(line), line))
                return
            yield None
            time.sleep(_PAUSE)


def _of_pipe(stream: BinaryIO) -> Iterator[Line | None]:
    for number, line in enumerate(stream):
        yield Line(_text(line), first=number == 0)


def _of_named_pipe(file: Path) -> Iterator[Line | None]:
    with _opened(file) as stream:
        yield from _of_pipe(stream)


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
