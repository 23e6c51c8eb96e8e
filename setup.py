"""The compiled inner loops of scoring; everything else about the package is in pyproject.toml.

Where there is no C compiler, or one that the loops are not written for, installation goes on without
them: numpy does the same, with the same bits, in about twice the time.
"""

import numpy as np
from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "disco_cli._kernel",
            ["disco_cli/_kernel.c"],
            include_dirs=[np.get_include()],
            # A fused product and sum would round otherwise than numpy.
            extra_compile_args=[
                "-O3",
                "-ffp-contract=off",
                "-fopenmp-simd",
                "-fno-strict-aliasing",
            ],
            optional=True,
        )
    ]
)
