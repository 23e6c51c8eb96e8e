"""Which K samples to evaluate a new model on."""
