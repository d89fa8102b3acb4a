"""Velocity fields: maps from (xt, t) to a velocity, all under one protocol."""
