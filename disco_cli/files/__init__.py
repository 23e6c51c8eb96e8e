"""Prediction files: reading, writing, checking and aligning them."""
