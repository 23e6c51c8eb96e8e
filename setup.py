"""The compiled inner loops of scoring; everything else about the package is in pyproject.toml.

Where there is no C compiler, or one that the loops are not written for, installation goes on without
them: numpy does the same, with the same bits, in half as much time again.
"""

from pathlib import Path
from zlib import crc32

from setuptools import Extension, setup

SOURCE = Path(__file__).parent / "disco_cli" / "_kernel.c"

# Whatever CFLAGS say: a fused product and sum would round otherwise than numpy, and a library that
# is linked for fast mathematics makes the whole process take numbers that are not normal for 0.
EXACT = ["-O3", "-fno-fast-math", "-fno-unsafe-math-optimizations", "-ffp-contract=off"]


def extensions() -> list[Extension]:
    """Return the loops, none without the headers of numpy (of which pip sees to it otherwise)."""
    try:
        import numpy as np  # noqa: PLC0415
    except ImportError:
        return []
    return [
        Extension(
            "disco_cli._kernel",
            ["disco_cli/_kernel.c"],
            depends=["setup.py"],
            include_dirs=[np.get_include()],
            define_macros=[("SOURCE", f"{crc32(SOURCE.read_bytes())}u")],
            extra_compile_args=[*EXACT, "-fopenmp-simd", "-fno-strict-aliasing"],
            extra_link_args=EXACT,
            optional=True,
        )
    ]


setup(ext_modules=extensions())
