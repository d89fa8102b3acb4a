"""One self-contained HTML file about scored data: figures, incidents, guilty sensors. Plain numpy in, no torch here."""

from graspad.report.data import ReportData
from graspad.report.html import render, write

__all__ = ["ReportData", "render", "write"]
