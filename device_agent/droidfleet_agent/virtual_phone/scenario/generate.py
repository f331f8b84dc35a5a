"""Long lists from a pattern: ``{generate: {count, item, cycle}}`` in a variable becomes that many elements at load."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from droidfleet_agent.virtual_phone.scenario.base import Model, Name
from droidfleet_agent.virtual_phone.scenario.issues import Issue, Place, issues_of, pointer
from droidfleet_agent.virtual_phone.scenario.template import Value

MAX_GENERATED = 2_000
"""Elements of one generated list; a phone's own contact list is about that long."""


class Generate(Model):
    """``item`` is made ``count`` times; in it `index`, `number` and one word of each cycle can be used."""

    count: Annotated[int, Field(ge=1, le=MAX_GENERATED)]
    item: Value
    cycle: dict[Name, Annotated[tuple[JsonValue, ...], Field(min_length=1, max_length=200)]] = Field(
        default_factory=dict, max_length=10
    )

    def elements(self) -> list[JsonValue]:
        """The elements, in order."""
        return [
            self.item.resolve(
                (
                    {
                        "index": index,
                        "number": index + 1,
                        **{name: words[index % len(words)] for name, words in self.cycle.items()},
                    },
                )
            )
            for index in range(self.count)
        ]


def expand(document: dict[str, JsonValue]) -> list[Issue]:
    """Replaces, in place, every generated variable of the document's apps; gives what was wrong with them."""
    issues: list[Issue] = []
    apps = document.get("apps")
    for index, app in enumerate(apps if isinstance(apps, list) else []):
        variables = app.get("variables") if isinstance(app, dict) else None
        if not isinstance(variables, dict):
            continue
        for name, value in variables.items():
            if isinstance(value, dict) and value.keys() == {"generate"}:
                place: Place = ("apps", index, "variables", name, "generate")
                try:
                    variables[name] = Generate.model_validate(value["generate"]).elements()
                except ValidationError as error:
                    found = issues_of(error, value["generate"])
                    issues += [Issue(pointer(place) + one.path, one.code, one.message, one.hint) for one in found]
    return issues
