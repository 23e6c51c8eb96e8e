"""The consensus that stands in for the right answer."""

import numpy as np

from disco_cli.selection.consensus import consensus_classes, consensus_responses


def test_consensus_by_hand():
    mean = np.array([[0.2, 0.8, np.nan], [0.5, 0.5, 0.0], [np.nan, np.nan, np.nan]])
    classes = consensus_classes(mean)
    assert classes.tolist() == [1, 0, 0]
    one = np.array([[0.1, 0.9, np.nan], [0.3, 0.3, 0.4], [np.nan] * 3], dtype=np.float16)
    responses = consensus_responses(one, classes)
    np.testing.assert_allclose(responses, [0.9, 0.3, np.nan], rtol=1e-3)
    assert responses.dtype == np.float64
