"""What training asks of a model, whatever it reads."""

from __future__ import annotations

from regard.models.captioner import Captioner
from regard.models.gradient_model import GradientModel
from regard.models.seq2seq import Seq2Seq

TrainableModel = GradientModel | Seq2Seq | Captioner
