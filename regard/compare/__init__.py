"""Contenders of any task, trained under one budget or finished: answers, scores with intervals, a ranking."""
