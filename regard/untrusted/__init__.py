"""Files that a stranger may have written: one place reads them, within limits, and no error prints a whole value."""
