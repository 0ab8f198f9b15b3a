"""Models without gradients: counts of what was seen, made into probabilities."""
