"""Finished runs of models that translate, parse or describe pictures, compared on one test set."""
