"""Linear algebra on one thread, so that a result does not depend on the cores of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def single_threaded(*modules: str) -> Iterator[None]:
    """Keep linear algebra on one thread: sums then have one order, whatever the machine does.

    It is faster, too, for arrays of the size of a few hundred models: on two cores that others use
    as well, two threads took twice the processor time of one.

    Parameters
    ----------
    *modules : str
        Packages that bring their own copy of the library and are used inside. They are imported
        here: the limit holds for the copies that are loaded.
    """
    from threadpoolctl import threadpool_limits

    for module in modules:
        import_module(module)
    with threadpool_limits(1):
        yield
