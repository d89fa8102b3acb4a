"""From scores to alarms; no torch here."""
