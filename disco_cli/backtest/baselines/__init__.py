"""Published methods of estimating a full score from K samples, one small module each."""
