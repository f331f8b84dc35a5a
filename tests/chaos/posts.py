"""What the load does on a phone: it types a word, sends it, confirms it. Each word is used once, so that every effect
names the request that it came from."""

from __future__ import annotations

import json

PACKAGE = "com.example.post"

TYPED, SENT, CONFIRMED = "typed", "sent", "confirmed"
"""The effects of one execution, in order."""

EFFECTS = (TYPED, SENT, CONFIRMED)

VIRTUAL_EFFECTS = (SENT, CONFIRMED)
"""Those that the scenario records under these names."""

DRAFT, SEND, CONFIRM = "Draft", "Send", "Confirm"
NOTHING = "nothing"
"""What the phone shows as last sent before anything was."""

PLAIN, SETTLED = "post-plain", "post-settled"
"""Two tasks: in the second one the screen tells whether the word was sent, so that `after` settles a doubt."""


def task(task_id: str) -> str:
    """A document of the library."""
    send: dict[str, object] = {"id": "send", "action": "CLICK", "selector": {"text": SEND}}
    if task_id == SETTLED:
        send["after"] = {"condition": {"visible": {"text": "= ${inputs.word}"}}}
    steps = [
        {"id": "type", "action": "INPUT", "packageName": PACKAGE, "selector": {"className": "android.widget.EditText"}}
        | {"value": "${inputs.word}"},
        send,
        {"id": "confirm", "action": "CLICK", "selector": {"text": CONFIRM}},
    ]
    return json.dumps({"schemaVersion": 1, "taskId": task_id, "inputs": {"word": {"type": "string"}}, "steps": steps})


SCENARIO = f"""
format: 1
name: post
description: One screen on which words are posted.
start: {PACKAGE}
apps:
  - package: {PACKAGE}
    label: Post
    home: main
    variables: {{draft: "", last: {NOTHING}}}
    screens:
      main:
        activity: .MainActivity
        root:
          type: column
          height: fill
          background: surface
          children:
            - {{type: field, name: draft, hint: {DRAFT}, bind: draft}}
            - type: button
              name: send
              text: {SEND}
              on_click: [{{effect: {SENT}, details: {{word: "{{{{draft}}}}"}}}}, {{set: {{last: "= {{{{draft}}}}"}}}}]
            - type: button
              name: confirm
              text: {CONFIRM}
              on_click: [{{effect: {CONFIRMED}, details: {{word: "{{{{draft}}}}"}}}}]
            - {{type: text, name: last, text: "{{{{last}}}}"}}
"""
