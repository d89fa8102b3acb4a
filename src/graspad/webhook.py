"""Incident events to a web address, in order, kept until the receiver has taken them."""

from __future__ import annotations

import json
import random
import string
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from graspad.errors import InputError, InvalidSettingError

Event = dict[str, Any]
TRY_AGAIN = {408, 425, 429}  # the only 4xx that speak of the moment and not of the event


class Outbox:
    """Posts events one at a time from a thread of its own, and again after every failure that may pass.

    An event waits until the receiver answers 2xx, so a stop in the middle repeats it rather than losing it: the header
    `Idempotency-Key: <watch>/<id>/<event>` is the same each time. Only two things drop an event, and both are told:
    another 4xx, by which the receiver says it will never take it, and more than `limit` waiting. Then the oldest
    "opened" goes, because the "closed" that follows tells the whole incident, or else the oldest event, but never the
    very first, which may be on its way. `on_problem` gets one line at a time, from the thread or the caller of `add`.
    """

    def __init__(
        self,
        url: str,
        waiting: Iterable[Event] = (),
        *,
        on_problem: Callable[[str], object] = lambda line: sys.stderr.write(f"webhook: {line}\n"),
        timeout: float = 10.0,
        first_pause: float = 1.0,
        longest_pause: float = 60.0,
        limit: int = 10_000,
    ) -> None:
        self._url, self._receiver = url, _receiver(url)
        self._on_problem, self._limit, self._timeout = on_problem, limit, timeout
        self._first_pause, self._longest_pause = first_pause, longest_pause
        # No handler of redirects: urllib would go on with a GET without the event, and its 200 would look like a yes.
        self._opener = OpenerDirector()
        for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler()):
            self._opener.add_handler(handler)
        self._jitter = random.Random()  # its own: the caller's seeded draws stay as they are
        self._waiting: list[Event] = []
        self._closing = self._stopped = False
        self._changed = threading.Condition()  # guards the three above; never held during a post
        for event in waiting:
            self.add(event)
        threading.Thread(target=self._deliver, name="graspad-webhook", daemon=True).start()

    def add(self, event: Event) -> None:
        """Put an event with "id" and "event" at the end and return at once; after `close` it only waits."""
        if not {"id", "event"} <= event.keys():
            raise InputError(f"A webhook event needs the keys 'id' and 'event'. Got {sorted(event)} instead.")
        event = json.loads(json.dumps(event, allow_nan=False))  # a copy, and what is no JSON fails here, not later
        with self._changed:
            self._waiting.append(event)
            self._changed.notify_all()
            if len(self._waiting) <= self._limit:
                return
            opened = (at for at in range(1, len(self._waiting)) if self._waiting[at]["event"] == "opened")
            lost = self._waiting.pop(next(opened, 1))
        self._tell(f"LOST {_key(lost)}: more than {self._limit:,} events wait for {self._receiver}.")

    @property
    def waiting(self) -> list[Event]:
        """Events the receiver has not taken yet, in order, the one being posted included: to save, not to change."""
        with self._changed:
            return list(self._waiting)

    def close(self, seconds: float) -> list[Event]:
        """Let the receiver take the rest for so long, stop, and give back what is left."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._stopped or not self._waiting, seconds)
            self._stopped = True
            self._changed.notify_all()
            return list(self._waiting)

    def _deliver(self) -> None:
        down, pause = False, self._first_pause
        while (event := self._next()) is not None:
            status, why, retry_after = self._post(event)
            refused = 400 <= status < 500 and status not in TRY_AGAIN
            if not refused and not 200 <= status < 300:
                if not down:
                    self._tell(f"{self._receiver} takes no events ({why}); they are kept and tried again.")
                down = True
                rest = max(pause * self._jitter.uniform(0.5, 1), min(retry_after, self._longest_pause))
                pause = self._first_pause if self._cut_short(rest) else min(2 * pause, self._longest_pause)
                continue
            if down:
                self._tell(f"{self._receiver} answers again.")
            if refused:
                self._tell(f"{self._receiver} refused {_key(event)} ({why}); it is dropped.")
            down, pause = False, self._first_pause
            with self._changed:
                self._waiting.pop(0)
                self._changed.notify_all()

    def _next(self) -> Event | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return None if self._stopped or not self._waiting else self._waiting[0]

    def _cut_short(self, seconds: float) -> bool:
        """Rest; a `close` meanwhile ends it, so that the receiver gets a last chance at once."""
        with self._changed:
            closing = self._closing
            return self._changed.wait_for(lambda: self._stopped or self._closing != closing, seconds)

    def _post(self, event: Event) -> tuple[int, str, float]:
        """The status (0: no answer), its reason, and the seconds the receiver wants to be left alone."""
        headers = {"Content-Type": "application/json", "User-Agent": "graspad", "Idempotency-Key": _key(event)}
        try:
            request = Request(self._url, json.dumps(event).encode(), headers, method="POST")
            with self._opener.open(request, timeout=self._timeout) as answer:
                after = answer.headers.get("Retry-After", "")
                return answer.status, f"HTTP {answer.status} {answer.reason}", float(after) if after.isdecimal() else 0
        except Exception as error:  # whatever it is: a thread that died would hold back all later events in silence
            return 0, str(getattr(error, "reason", error)), 0

    def _tell(self, line: str) -> None:
        with suppress(Exception):  # a closed stderr must not stop the posts
            self._on_problem(line)


def _receiver(url: str) -> str:
    """The checked url as messages name it: without its path, which often holds a secret."""
    with suppress(ValueError):  # brackets, ports and host names that cannot be
        parts = urlsplit(url)
        # urllib takes user:password@ for a part of the host's name, and fails at each post on spaces and non-ASCII.
        clean = url.isascii() and url.isprintable() and " " not in url and "@" not in parts.netloc
        if parts.scheme in ("http", "https") and (parts.hostname or "").encode("idna") and clean and parts.port != 0:
            return f"{parts.scheme}://{parts.netloc}"
    must = "be an address such as https://example.com/alarms: http or https, a host, ASCII only, no user, no spaces"
    raise InvalidSettingError.of("url", must, url)


def _key(event: Event) -> str:
    """What names an event in a header: ASCII, without spaces and line ends."""
    names = (event[name] for name in ("watch", "id", "event") if name in event)
    return quote("/".join(map(str, names)), safe=string.punctuation, errors="replace")
