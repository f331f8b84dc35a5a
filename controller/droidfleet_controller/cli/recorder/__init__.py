"""The recorder: what a person does on a phone through our own list of nodes becomes a task.

``line -> commands (what is meant) -> recording (the step) -> live (the step is run) -> recording (the document)``
"""
