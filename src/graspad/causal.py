"""The causal score of rows that come one by one, split by sensor."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from numpy import ndarray

from graspad.data.gaps import Feed, Rows
from graspad.model import Model, together
from graspad.view import View

BySensor = Float[ndarray, " sensor"]


@dataclass
class Sight:
    """A view with the means that it has seen, if it sees means, and what it said of the last window."""

    view: View
    means: Feed | None
    shares: BySensor | None = None
    stale: bool = True

    def take(self, feed: Feed, row: int) -> None:
        """See the row that has just come, the last one of the feed."""
        every = self.view.lens.every
        if (row + 1) % every:
            return
        self.stale = True
        if self.means is not None:
            (mean,) = (rows := self.view.lens.rows(feed.latest(every))).values
            self.means.push(mean, left_out=bool(rows.lost[0]), filled=None if rows.filled is None else rows.filled[0])

    def latest(self, feed: Feed) -> BySensor | None:
        """Shares of the window that ended last; None where it lies in a gap or is not yet full."""
        if self.stale:
            source = feed if self.means is None else self.means
            self.shares, self.stale = self.view.latest(source.latest(self.view.lens.window)), False
        return self.shares


class CausalScorer:
    """Keeps the last rows of a stream, and scores the windows that end with the last one."""

    def __init__(self, model: Model, kept: int) -> None:
        sensors, settings = len(model.sensors), model.settings
        self.model = model
        self.feed = Feed(sensors, settings.gap_limit, max(kept, settings.window, *(v.lens.every for v in model.views)))
        self.sights = [
            Sight(view, Feed(sensors, 0, view.lens.window) if view.lens.every > 1 else None) for view in model.views
        ]
        self.rows = 0

    def push(self, values: BySensor, left_out: bool) -> None:
        """Take the next row, in the user's units, NaN where a value is missing."""
        self.feed.push(self.model.scale.apply(values[None])[0], left_out)
        for sight in self.sights:
            sight.take(self.feed, self.rows)
        self.rows += 1

    def shares(self) -> BySensor | None:
        """ξ of the last row, split by sensor; None where it has none."""
        if self.feed.lost[-1]:
            return None
        known = [(sight.view, shares) for sight in self.sights if (shares := sight.latest(self.feed)) is not None]
        if not known:
            return None
        views, shares = zip(*known, strict=True)
        return together(views, shares)

    @property
    def last(self) -> Rows:
        """The last row."""
        return self.feed.latest(1)
