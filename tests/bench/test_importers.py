"""What holds for every importer, and the tools they share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.bench.importers import ORIGINALS, import_original
from graspad.bench.importers.layout import Rows, find, segments, split_in_time
from graspad.errors import InputError
from imported import loaded


@given(st.lists(st.booleans(), min_size=5, max_size=60), st.booleans())
def test_a_split_in_time_keeps_every_row_but_the_anomalous_ones_of_train(labels, with_val):
    flags = np.array(labels)
    splits = split_in_time(Rows(np.arange(float(len(flags)))[:, None], flags), with_val)
    kept = [int(row) for part in splits.values() for row in part.values[:, 0]]
    assert kept == [row for row in range(len(flags)) if not (row < len(flags) // 5 and flags[row])]
    assert not splits["train"].labels.any()
    for part in splits.values():
        np.testing.assert_array_equal(part.labels, flags[part.values[:, 0].astype(int)])
    assert ("val" in splits) == (with_val and len(flags) >= 4)


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_folder_without_the_original_is_told(tmp_path, name):
    with pytest.raises(InputError, match=r"There is no folder '.*nowhere'"):
        import_original(name, tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(InputError, match=r"There is (no|neither) '?(labeled|test_label|file such as|swan_sf)"):
        import_original(name, tmp_path, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_original_is_told(tmp_path):
    with pytest.raises(InputError, match=r"There is no importer 'swat'\. There are smap, msl, smd, cicids, swan"):
        import_original("swat", tmp_path, tmp_path)


def test_an_import_that_fails_leaves_whole_files_only(tmp_path):
    source = tmp_path / "original"
    for split in ("train", "test"):
        (source / split).mkdir(parents=True)
        for name in ("A-1", "A-2"):
            np.save(source / split / f"{name}.npy", np.zeros((9, 25)))
    lines = [f'{name},SMAP,"[[1, 2]]",[point],9' for name in ("A-1", "A-2")]
    head = "chan_id,spacecraft,anomaly_sequences,class,num_values"
    (source / "labeled_anomalies.csv").write_text("\n".join([head, *lines]))
    (source / "test" / "A-2.npy").write_bytes(b"torn")
    with pytest.raises(InputError, match=r"A-2\.npy' cannot be read"):
        import_original("smap", source, tmp_path / "out", check=False)
    assert loaded(tmp_path / "out").keys() == {"A-1"}
    assert len(list((tmp_path / "out" / "SMAP").iterdir())) == 2
    (tmp_path / "blocked").write_text("a file")
    with pytest.raises(InputError, match=r"The folder '.*blocked/SMAP' cannot be made"):
        import_original("smap", source, tmp_path / "blocked", check=False)


@given(st.lists(st.booleans(), max_size=40))
def test_segments_cover_exactly_the_anomalous_rows(labels):
    found = segments(np.array(labels, dtype=bool))
    covered = [row for first, last in found.tolist() for row in range(first, last + 1)]
    assert covered == [row for row, label in enumerate(labels) if label]
    assert all(start > end + 1 for (_, end), (start, _) in zip(found.tolist(), found.tolist()[1:], strict=False))


def test_the_nearest_file_is_found_whatever_its_case(tmp_path):
    for folder in ("a/data/train", "b/Train", "c/c/c/c/train"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "X-1.NPY").touch()
    assert find(tmp_path, "train/x-*.npy") == tmp_path / "b" / "Train" / "X-1.NPY"
    assert find(tmp_path / "c" / "c", "train/x-1.npy") == tmp_path / "c/c/c/c/train/X-1.NPY"
    assert find(tmp_path, "test/x-1.npy") is None
