"""Arrays and times as plain data for JSON, exactly."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


def pack(value: Any) -> Any:
    """Arrays, times, and lists and dictionaries of them, as what JSON knows.

    >>> unpack(pack({"seen": np.array([0.1, np.nan])}))
    {'seen': array([0.1, nan])}
    """
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": data, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.datetime64):
        return {"time": value.astype("datetime64[ns]").astype(np.int64).item()}
    if isinstance(value, dict):
        return {name: pack(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [pack(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def unpack(value: Any) -> Any:
    """What `pack` was given; times to the nanosecond."""
    if isinstance(value, dict):
        if "array" in value:
            flat = np.frombuffer(base64.b64decode(value["array"]), dtype=value["dtype"])
            return flat.reshape(value["shape"]).copy()
        if set(value) == {"time"}:
            return np.datetime64(value["time"], "ns")
        return {name: unpack(part) for name, part in value.items()}
    return [unpack(part) for part in value] if isinstance(value, list) else value
