"""What training asks of a model, whatever it reads."""

from __future__ import annotations

from regard.models.gradient_model import GradientModel

TrainableModel = GradientModel
