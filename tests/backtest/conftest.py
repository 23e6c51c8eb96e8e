"""One thread for linear algebra and k-means: small problems only lose by more."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    import scipy.optimize  # noqa: F401
    import sklearn.cluster
    import sklearn.ensemble  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
