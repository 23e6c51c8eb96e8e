"""One function per command, each returning one frozen result: the Python API."""
