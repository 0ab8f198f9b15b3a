"""Studies: small experiments that show what the lectures claim, each with a figure, its numbers and one sentence.

`table.py` names them, `runner.py` runs one and writes its page. A study is a function from its settings (and runs of
the user's, where it takes them) to a `Finding`; it prints nothing and writes nothing.
"""
