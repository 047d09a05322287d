"""Images as points: Tiny ImageNet, which the user must provide, and digits and photograph crops from scikit-learn.

Points are NumPy arrays (n, m) on the host, for `dimension_instance`. Each function states their number of levels.
"""

import hashlib
import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits import checks
from jaxbandits.checks import require

IMAGE_LEVELS = 255  # levels of `tiny_imagenet` and `image_crops`
DIGIT_LEVELS = 16  # levels of `digits`

SIDE = 64  # pixels per side of an image
DIGITS = 1797  # number of digits in the data set
HEIGHT = 427  # height of the photographs in pixels
TINY_IMAGENET = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"


def tiny_imagenet(path: str | Path, n: int, start: int = 0, *, cache: str | Path | None = None) -> np.ndarray:
    """Loads validation images of Tiny ImageNet as points.

    Decoded images are cached in a .npy file, so the next call takes no time. If it cannot be written, they are decoded
    each time.

    Args:
        path: the folder with val_0.JPEG, val_1.JPEG, ...: tiny-imagenet-200/val/images.
        n: number of images, at least 2.
        start: number of the first image; the others follow by number.
        cache: folder of the .npy files. If None, `path` if it is writable, otherwise `jaxbandits` in the user's cache
            folder (`XDG_CACHE_HOME`, or ~/.cache).

    Returns:
        uint8 (n, 12288), of 255 levels: rows, columns, channels. Grey images have three equal channels.

    Raises:
        ValueError: an image is missing or not 64 x 64, or `n` or `start` is out of range.
        ImportError: Pillow is not installed.
    """
    checks.whole("n", n, least=2)
    checks.whole("start", start, least=0)
    path = as_path("path", path)
    name = f"tiny-imagenet-{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}-{start}-{n}.npy"
    folders = [path, _user_cache()] if cache is None else [as_path("cache", cache)]
    for folder in folders:
        images = _read_cached(folder / name, (n, SIDE * SIDE * 3))
        if images is not None:
            return images
    images = np.stack([_decode(path / f"val_{number}.JPEG") for number in range(start, start + n)])
    any(_write_cached(folder / name, images) for folder in folders)
    return images


def digits(n: int | None = None, seed: int | None = None) -> np.ndarray:
    """Loads handwritten digits of 8 x 8 pixels as points.

    Some of the 1797 digits are equal, and so are many distances: greedy's centers may be tied.

    Args:
        n: number of digits, in 2..1797. If None, all.
        seed: seed of `numpy.random.default_rng`, whose permutation of all digits gives the first n. If None, the first
            n of the data set.

    Returns:
        uint8 (n, 64), of 16 levels.

    Raises:
        ValueError: `n` is out of range.
        ImportError: scikit-learn is not installed.
    """
    n = DIGITS if n is None else checks.whole("n", n, least=2, most=DIGITS)
    if seed is not None:
        checks.whole("seed", seed, least=0)
    points = _import_or_explain("sklearn.datasets", "scikit-learn").load_digits().data.astype(np.uint8)
    return points[:n] if seed is None else points[np.random.default_rng(seed).permutation(DIGITS)[:n]]


def image_crops(n: int, seed: int, size: int = SIDE, augment: bool = False) -> np.ndarray:
    """Draws random crops of two photographs as points, a stand-in for small images.

    Args:
        n: number of crops, at least 2.
        seed: seed of `numpy.random.default_rng`.
        size: pixels per side of a crop, in 1..427; a crop shows a square of random size and position.
        augment: if True, channels are permuted, half the crops are inverted, and half are mirrored.

    Returns:
        uint8 (n, 3 size^2), of 255 levels: rows, columns, channels.

    Raises:
        ValueError: `n` or `size` is out of range.
        ImportError: scikit-learn or Pillow is not installed.
    """
    checks.whole("n", n, least=2)
    checks.whole("seed", seed, least=0)
    checks.whole("size", size, least=1, most=HEIGHT)
    checks.flag("augment", augment)
    _import_or_explain("PIL.Image", "Pillow")
    load = _import_or_explain("sklearn.datasets", "scikit-learn").load_sample_image
    photographs = [load(name) for name in ("china.jpg", "flower.jpg")]
    height, width, _ = photographs[0].shape
    rng = np.random.default_rng(seed)

    def crop() -> np.ndarray:
        photograph = photographs[rng.integers(2)]
        side = rng.integers(size, height + 1)
        top, first_column = rng.integers(0, height - side + 1), rng.integers(0, width - side + 1)
        offsets = np.arange(size) * side // size
        image = photograph[top + offsets[:, None], first_column + offsets]
        if augment:
            image = image[:, :, rng.permutation(3)]
            image = 255 - image if rng.random() < 0.5 else image
            image = image[:, ::-1] if rng.random() < 0.5 else image
        return image.reshape(-1)

    return np.stack([crop() for _ in range(n)])


def _decode(file: Path) -> np.ndarray:
    require(file.is_file(), "path", f"hold {file.name}, from {TINY_IMAGENET}", str(file))
    with _import_or_explain("PIL.Image", "Pillow").open(file) as image:
        require(image.size == (SIDE, SIDE), file.name, f"be of {SIDE} x {SIDE} pixels", image.size)
        return np.asarray(image.convert("RGB")).reshape(-1)


def _import_or_explain(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this instance needs {package}: pip install {package.lower()}") from error


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxbandits"


def _read_cached(file: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    try:
        images = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return images if images.shape == shape and images.dtype == np.uint8 else None


def _write_cached(file: Path, images: np.ndarray) -> bool:
    """Writes the file, and returns True if that succeeds."""
    temporary = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".tmp", delete=False) as stream:
            temporary = Path(stream.name)
            np.save(stream, images)
        # The rename is atomic, so no reader meets half a file.
        temporary.replace(file)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        return False
    return True


def as_path(name: str, value: Any) -> Path:
    """Returns a path; raises `ValueError` unless it is given as a string or a path."""
    require(isinstance(value, (str, Path)), name, "be a path", value)
    return Path(value)
