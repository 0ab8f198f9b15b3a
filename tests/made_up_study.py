"""A study that nobody made, with a line that falls to zero."""

from regard.studies.finding import Chart, Finding, Line, Numbers, Study


def made_up_study(sentence: str = "Lines <fall> & stay.", name: str = "rnn") -> Study:
    lines = Line(name, ((1.0, 1.0), (2.0, 0.1), (4.0, 0.0))), Line("b", ((1.0, 1.0), (4.0, 0.5)))
    chart = Chart("Falling", "steps", "share", lines)
    finding = Finding("Does it fall?", sentence, (chart,), Numbers("Shares", ("model", "at 1"), ((name, 1.0),)),
                      {"How": "by hand"}, numbers={"x": [1, 2]})  # fmt: skip
    command, versions = "regard study gradients", {"regard": "0"}
    return Study("gradients", finding, command, {"seed": 0}, "a machine", versions, "2026-01-01", 3.0)
