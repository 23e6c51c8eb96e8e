"""How much the models disagree on each sample."""
