"""Task protocol v1: models, the one validator, results and their stable words.

Data passes ``text -> jsontext.parse -> validate -> Task``; the controller, the agent and the CLI all call `validate`
and none has rules of its own. Pure: no I/O, no clock.
"""
