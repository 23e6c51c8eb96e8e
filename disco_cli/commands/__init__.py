"""One module per command: parse, call one workflow, render."""
