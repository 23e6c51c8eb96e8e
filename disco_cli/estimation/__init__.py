"""From a model's outputs on the K selected samples to its full score."""
