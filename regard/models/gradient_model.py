"""Every model with a gradient, for those who train, score and trace one without asking which it is."""

from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel

GradientModel = LanguageModel | PointerModel
