"""Renderings of results: tables, tab-separated values and JSON."""
