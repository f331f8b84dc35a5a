"""A one-page app for tests of the driver: two text fields and a button that counts its taps."""

from __future__ import annotations

from droidfleet_agent.virtual_phone.scenario.models import Scenario

PACKAGE = "com.example.form"
FORM = Scenario.model_validate(
    {
        "format": 1,
        "name": "form",
        "start": PACKAGE,
        "apps": [
            {
                "package": PACKAGE,
                "label": "Form",
                "home": "form",
                "screens": {
                    "form": {
                        "activity": ".FormActivity",
                        "root": {
                            "type": "column",
                            "children": [
                                {"type": "field", "id": "note", "hint": "Note", "multiline": True},
                                {"type": "field", "id": "password", "hint": "Password", "kind": "password"},
                                {"type": "button", "id": "save", "text": "Save"},
                            ],
                        },
                    }
                },
            }
        ],
    }
)
