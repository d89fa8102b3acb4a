"""The benchmark: data sets, methods, metrics, tables. Nothing in the detector depends on it."""
