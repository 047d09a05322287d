"""The generators, and the loaders on small files of their formats; on the real files if JAXBANDITS_DATA is set."""

import gzip
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jaxbandits import kcenter
from jaxbandits.kcenter._problem import images as _images

needs_data = pytest.mark.skipif("JAXBANDITS_DATA" not in os.environ, reason="JAXBANDITS_DATA is not set")
HEADER = "head,b,c,votes_b_closer,votes_c_closer\n"


def data(*folders):
    return Path(os.environ["JAXBANDITS_DATA"], *folders)


# Tiny ImageNet


@pytest.fixture
def images(tmp_path):
    """Returns a folder of twelve images, the eleventh grey, and their colours."""
    folder = tmp_path / "images"
    folder.mkdir()
    colours = np.random.default_rng(0).integers(0, 256, (12, 3))
    colours[10] = 77
    for number, colour in enumerate(colours):
        mode, fill = ("L", 77) if number == 10 else ("RGB", tuple(int(x) for x in colour))
        Image.new(mode, (64, 64), fill).save(folder / f"val_{number}.JPEG", quality=100, subsampling=0)
    return folder, colours


@pytest.fixture
def decoded(monkeypatch):
    """Lists the names of the files decoded so far."""
    names, decode = [], _images._decode
    monkeypatch.setattr(_images, "_decode", lambda file: names.append(file.name) or decode(file))
    return names


def test_tiny_imagenet_reads_images_by_number_and_grey_images_too(images, decoded):
    folder, colours = images
    points = kcenter.tiny_imagenet(folder, 4, start=8)
    assert decoded == ["val_8.JPEG", "val_9.JPEG", "val_10.JPEG", "val_11.JPEG"]
    assert points.shape == (4, 12288)
    assert points.dtype == np.uint8
    # JPEG converts colours, with rounding.
    assert np.abs(points.reshape(4, 4096, 3) - colours[8:, None]).max() <= 2
    assert np.all(points[2] == 77)


def test_an_image_is_flattened_by_row_column_and_channel(tmp_path):
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[:32, :, 0] = picture[:, 32:, 2] = 200
    for number in range(2):
        Image.fromarray(picture).save(tmp_path / f"val_{number}.JPEG", quality=100, subsampling=0)
    image = kcenter.tiny_imagenet(tmp_path, 2)[1].reshape(64, 64, 3)
    assert np.abs(image.astype(int) - picture)[8:24, 8:24].max() <= 3
    assert np.abs(image.astype(int) - picture)[40:56, 40:56].max() <= 3


def test_tiny_imagenet_caches_decoded_images(images, decoded, tmp_path, monkeypatch):
    folder, _ = images
    first = kcenter.tiny_imagenet(folder, 3)
    np.testing.assert_array_equal(kcenter.tiny_imagenet(folder, 3), first)
    assert len(decoded) == 3
    assert [file.suffix for file in folder.iterdir() if file.suffix != ".JPEG"] == [".npy"]
    np.testing.assert_array_equal(kcenter.tiny_imagenet(folder, 3, start=1)[:2], first[1:])
    assert len(decoded) == 6
    chosen = tmp_path / "made" / "here"
    kcenter.tiny_imagenet(folder, 3, cache=chosen)
    kcenter.tiny_imagenet(folder, 3, cache=chosen)
    assert len(decoded) == 9
    # A corrupt file is replaced.
    (cached,) = chosen.iterdir()
    cached.write_bytes(cached.read_bytes()[:200])
    np.testing.assert_array_equal(kcenter.tiny_imagenet(folder, 3, cache=chosen), first)
    assert len(decoded) == 12
    kcenter.tiny_imagenet(folder, 3, cache=chosen)
    assert len(decoded) == 12


def test_tiny_imagenet_caches_for_the_user_if_the_folder_is_read_only(images, decoded, tmp_path, monkeypatch):
    folder, _ = images
    # Root may write anywhere, so that file modes would refuse nothing.
    write = _images.tempfile.NamedTemporaryFile

    def refuse(*args, dir, **options):
        if dir in refused:
            raise PermissionError(13, "Permission denied", str(dir))
        return write(*args, dir=dir, **options)

    monkeypatch.setattr(_images.tempfile, "NamedTemporaryFile", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    refused = [folder, tmp_path / "cache" / "jaxbandits"]
    first = kcenter.tiny_imagenet(folder, 2)  # works without any cache
    refused = [folder]
    np.testing.assert_array_equal(kcenter.tiny_imagenet(folder, 2), first)
    assert len(decoded) == 4
    assert len(list((tmp_path / "cache" / "jaxbandits").iterdir())) == 1
    np.testing.assert_array_equal(kcenter.tiny_imagenet(folder, 2), first)
    assert len(decoded) == 4


def test_bad_images(images, tmp_path):
    folder, _ = images
    with pytest.raises(
        ValueError, match="path must hold val_12.JPEG, from http://cs231n.*, got '.*/images/val_12.JPEG'"
    ):
        kcenter.tiny_imagenet(folder, 13)
    Image.new("RGB", (64, 63)).save(folder / "val_1.JPEG")
    with pytest.raises(ValueError, match=re.escape("val_1.JPEG must be of 64 x 64 pixels, got (64, 63)")):
        kcenter.tiny_imagenet(folder, 2)


@pytest.mark.parametrize(
    ("missing", "package", "call"),
    [
        ("PIL", "Pillow", lambda folder: kcenter.tiny_imagenet(folder, 2)),
        ("PIL", "Pillow", lambda folder: kcenter.image_crops(2, 0)),
        ("sklearn", "scikit-learn", lambda folder: kcenter.image_crops(2, 0)),
        ("sklearn", "scikit-learn", lambda folder: kcenter.digits()),
    ],
)
def test_a_missing_package_is_named(images, monkeypatch, missing, package, call):
    for module in [missing, *(name for name in sys.modules if name.startswith(f"{missing}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"this instance needs {package}: pip install {package.lower()}"):
        call(images[0])


@needs_data
def test_real_images_and_their_greedy_centers(tmp_path):
    points = kcenter.tiny_imagenet(data("tiny-imagenet-200", "val", "images"), 10_000, cache=tmp_path)
    pixels = points.reshape(10_000, -1, 3)
    assert np.sum(np.all(pixels == pixels[:, :, :1], axis=(1, 2))) == 187
    for n, centers, bottleneck in [
        (100, [0, 25, 42, 64, 30, 72, 44, 2, 91, 62], 0.2763),
        (1000, [0, 694, 140, 320, 42, 238, 845, 627, 779, 318], 0.3226),
        (10_000, [0, 3624, 6247, 7643, 2566, 6383, 4377, 3786, 8292, 3592], 0.3417),
    ]:
        solution = kcenter.greedy_from_points(points[:n], k=10, levels=_images.IMAGE_LEVELS)
        np.testing.assert_array_equal(solution.centers, centers)
        assert abs(solution.bottlenecks[0] - bottleneck) < 5e-5


# Zappos


def write_votes(folder, text):
    (folder / "zappos_triplet_counts.csv.gz").write_bytes(gzip.compress(text.encode()))


def test_zappos_from_votes_by_hand(tmp_path):
    # P[0,1] = 3/4, P[0,2] = 1/4; P[1,0] = 0, P[1,2] = 1; P[2,0] = P[2,1] = 1/2.
    write_votes(tmp_path, HEADER + "0,1,2,3,1\n1,0,2,0,2\n2,0,1,1,1\n")
    expected = [[0, 1, 7 / 8], [1, 0, 1 / 2], [7 / 8, 1 / 2, 0]]
    np.testing.assert_allclose(kcenter.zappos_from_votes(tmp_path), expected)


def test_zappos_from_votes_skips_triplets_without_a_vote(tmp_path):
    # Head 0: 1 beats 2 by 3/4, has no vote against 3, and 3 beats 2. All other heads are even.
    lines = ["0,1,2,3,1", "0,1,3,0,0", "0,2,3,0,2", "1,0,2,1,1", "1,0,3,1,1", "1,2,3,1,1"]
    lines += ["2,0,1,1,1", "2,0,3,1,1", "2,1,3,1,1", "3,0,1,1,1", "3,0,2,1,1", "3,1,2,1,1"]
    write_votes(tmp_path, HEADER + "\n".join(lines))
    np.testing.assert_allclose(kcenter.zappos_from_votes(tmp_path)[0], [0, 1 - 0.375, 1 - 0.0625, 1 - 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "zappos_triplet_counts.csv.gz must begin with head,b,c,votes_b_closer,votes_c_closer, got 'a,b'"),
        ("", "zappos_triplet_counts.csv.gz must begin with head,b,c,votes_b_closer,votes_c_closer, got ''"),
        (HEADER, "zappos_triplet_counts.csv.gz must hold at least one triplet, got 0"),
        (HEADER + "0,1,2,3,1\n1,2,0,0,2\n", "must hold lines of head, b < c and two counts, got '1,2,0,0,2'"),
        (HEADER + "0,0,2,3,1\n", "must hold lines of head, b < c and two counts, got '0,0,2,3,1'"),
        (HEADER + "0,1,2,3,-1\n", "must hold lines of head, b < c and two counts, got '0,1,2,3,-1'"),
        (HEADER + "0,1,2,3,1\n1,0,2,0,0\n", "must hold a vote on every ordered pair, got 'none on [[1, 0]]'"),
    ],
)
def test_bad_votes(tmp_path, text, message):
    write_votes(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(message)):
        kcenter.zappos_from_votes(tmp_path)


def write_matrix(folder, size):
    z = np.random.default_rng(0).random((size, 2))
    table = np.round(np.linalg.norm(z[:, None] - z, axis=-1) / 2, 6)
    (folder / "D_heuristic_85x85.csv").write_text("\n".join(",".join(map(str, row)) for row in table) + "\n")
    return table


def test_zappos_reads_the_matrix(tmp_path):
    table = write_matrix(tmp_path, 85)
    np.testing.assert_array_equal(kcenter.zappos(tmp_path), table)
    np.testing.assert_array_equal(kcenter.zappos(tmp_path, 7), table[:7, :7])


def test_bad_matrix(tmp_path):
    for source, file in (("matrix", "D_heuristic_85x85.csv"), ("votes", "zappos_triplet_counts.csv.gz")):
        with pytest.raises(
            ValueError, match=rf"path must hold {file}, .*Heim et al. \(2015\).*salmon.*, got '.*/{file}'"
        ):
            kcenter.zappos(tmp_path, source=source)
    write_matrix(tmp_path, 84)
    with pytest.raises(ValueError, match=re.escape("D_heuristic_85x85.csv must hold 85 x 85 numbers, got (84, [84])")):
        kcenter.zappos(tmp_path)


@needs_data
def test_real_shoes():
    matrix, votes = (kcenter.zappos(data("zappos"), source=source) for source in ("matrix", "votes"))
    assert matrix.shape == votes.shape == (85, 85)
    assert np.abs(matrix - votes).max() < 1e-6
    np.testing.assert_array_equal(matrix, matrix.T)
    apart = matrix[~np.eye(85, dtype=bool)]
    assert abs(apart.min() - 0.0855) < 5e-5
    assert abs(apart.max() - 0.9938) < 5e-5
    np.testing.assert_array_equal(
        kcenter.greedy(matrix[:55, :55], k=10, first_center=17).centers, [17, 26, 51, 13, 7, 9, 41, 22, 6, 23]
    )
    np.testing.assert_array_equal(kcenter.zappos(data("zappos"), 55, "votes"), votes[:55, :55])


# Data of scikit-learn


def test_digits():
    points = kcenter.digits()
    assert points.shape == (1797, 64)
    assert points.dtype == np.uint8
    assert points.max() == _images.DIGIT_LEVELS
    np.testing.assert_array_equal(points[0, :8], [0, 0, 5, 13, 9, 1, 0, 0])
    np.testing.assert_array_equal(kcenter.digits(5), points[:5])
    np.testing.assert_array_equal(kcenter.digits(5, 3), points[np.random.default_rng(3).permutation(1797)[:5]])


def test_image_crops_come_pixel_by_pixel_from_the_photographs():
    from sklearn.datasets import load_sample_image

    photographs = [load_sample_image("china.jpg"), load_sample_image("flower.jpg")]
    points = kcenter.image_crops(6, 5, size=9).reshape(6, 9, 9, 3)
    rng = np.random.default_rng(5)
    for crop in points:
        photograph = photographs[rng.integers(2)]
        side = rng.integers(9, 428)
        top, start = rng.integers(0, 428 - side), rng.integers(0, 641 - side)
        for row in range(9):
            for column in range(9):
                source = photograph[top + (row * side) // 9, start + (column * side) // 9]
                np.testing.assert_array_equal(crop[row, column], source)


def test_augmented_crops_permute_channels_invert_and_mirror():
    plain, changed = (kcenter.image_crops(2, 11, size=8, augment=augment)[0] for augment in (False, True))
    rng = np.random.default_rng(11)
    rng.integers(2)
    side = rng.integers(8, 428)
    rng.integers(0, 428 - side), rng.integers(0, 641 - side)
    channels, inverted, mirrored = rng.permutation(3), rng.random() < 0.5, rng.random() < 0.5
    expected = plain.reshape(8, 8, 3)[:, :, channels]
    expected = 255 - expected if inverted else expected
    expected = expected[:, ::-1] if mirrored else expected
    np.testing.assert_array_equal(changed.reshape(8, 8, 3), expected)
    assert kcenter.image_crops(2, 11).shape == (2, 12288)


# Random points


def test_clusters():
    points = kcenter.clusters(7, 50, 3, 0.2, seed=1)
    rng = np.random.default_rng(1)
    centers = rng.uniform(0.1, 0.9, (3, 50))
    assert points.shape == (7, 50)
    assert points.min() == 0  # clipped
    assert points.max() == 1
    for a in range(7):
        assert np.abs(points[a] - centers[a % 3]).max() <= 0.2
    # There is one greedy center per cluster.
    apart = kcenter.clusters(30, 200, 5, 0.05, seed=2)
    assert set(kcenter.greedy_from_points(apart, k=5).centers % 5) == set(range(5))


def test_contrast_rows():
    points = kcenter.contrast_rows(6, 4000, seed=1)
    scale = np.random.default_rng(1).uniform(0.05, 1, 6)
    np.testing.assert_allclose(np.ptp(points, axis=1), scale, rtol=0.01)
    np.testing.assert_allclose((points.min(axis=1) + points.max(axis=1)) / 2, 0.5, atol=0.01)


def test_binary_rows():
    points = kcenter.binary_rows(6, 4000, seed=1)
    share = np.random.default_rng(1).uniform(0.05, 0.95, 6)
    assert points.dtype == np.uint8
    assert set(np.unique(points)) == {0, 1}
    np.testing.assert_allclose(points.mean(axis=1), share, atol=0.04)
    assert kcenter.greedy_from_points(points, k=2, levels=1).bottlenecks[0] <= 1


def test_triplet_like():
    table = kcenter.triplet_like(30, seed=4)
    assert table.shape == (30, 30)
    np.testing.assert_array_equal(table, table.T)
    assert np.all(np.diag(table) == 0)
    assert table.min() >= 0
    assert table.max() <= 1
    assert not np.array_equal(table, kcenter.triplet_like(30, seed=5))
    with pytest.raises(ValueError, match="n must be an integer of at least 3, got 2"):
        kcenter.triplet_like(2, seed=0)


def test_triplet_like_with_voters_who_never_err():
    """If voters never err, P[i, j] is the share of the other points that are farther from i than j is."""
    table = kcenter.triplet_like(9, seed=2, dim=2, sharpness=1e6, reps=3)
    z = np.random.default_rng(2).standard_normal((9, 2))
    far = np.linalg.norm(z[:, None] - z, axis=-1)
    share = np.array(
        [[sum(far[i, l] > far[i, j] for l in range(9) if l not in (i, j)) / 7 for j in range(9)] for i in range(9)]
    )
    expected = 1 - share * share.T
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(table, expected)


def test_triplet_like_votes_by_the_logistic_law():
    """Three points and many votes give the law itself."""
    table = kcenter.triplet_like(3, seed=7, sharpness=1.5, reps=10**7)
    z = np.random.default_rng(7).standard_normal((3, 3))
    far = np.linalg.norm(z[:, None] - z, axis=-1)
    for i, j, l in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        of_i = 1 / (1 + np.exp(-1.5 * (far[i, l] - far[i, j])))
        of_j = 1 / (1 + np.exp(-1.5 * (far[j, l] - far[j, i])))
        assert abs(table[i, j] - (1 - of_i * of_j)) < 2e-3
