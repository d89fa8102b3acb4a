"""From the user's table to scaled windows and back to rows; no torch here."""
