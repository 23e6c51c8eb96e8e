"""Estimate a model's full-benchmark score from about 1 % of the samples."""

__version__ = "0.1.0"
