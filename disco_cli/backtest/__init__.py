"""How well each method would have predicted the models whose score is known."""
