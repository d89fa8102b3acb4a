import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graspad.report.thin import thin

values = arrays(np.float64, st.integers(1, 400), elements=st.floats(-1e3, 1e3) | st.just(np.nan))


@given(values, st.integers(1, 40))
def test_extremes_and_ends_stay(signal, buckets):
    kept = thin(signal, buckets)
    assert len(kept) <= max(2 * buckets + 2, 1)
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(signal) - 1
    if not np.isnan(signal).all():
        assert np.nanmin(signal[kept]) == np.nanmin(signal)
        assert np.nanmax(signal[kept]) == np.nanmax(signal)


@given(values, st.integers(1, 40))
def test_each_bucket_keeps_its_own(signal, buckets):
    kept = set(thin(signal, buckets).tolist())
    size = -(-len(signal) // buckets)
    for first in range(0, len(signal), size):
        bucket = signal[first : first + size]
        drawn = [signal[row] for row in range(first, first + len(bucket)) if row in kept]
        assert drawn, "a bucket without a point would join what a gap parts"
        if np.isnan(bucket).all():
            assert np.isnan(drawn).all()
        else:
            assert np.nanmin(drawn) == np.nanmin(bucket)
            assert np.nanmax(drawn) == np.nanmax(bucket)
