"""Logs of other evaluation tools, turned into prediction files, and selections handed back."""
