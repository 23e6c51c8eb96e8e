"""What is assumed of a target before it is seen; shared by selection and estimation."""

PRIOR_VARIANCE = 4.0
"""Variance of a target's factors before it is seen, in units of the references' own variance.

A target may lie outside the references; above 1 the size hardly matters (1, 4 and 100 measured).
"""
