"""What a scenario can make happen: one model for each verb, told apart by the verb's own key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from droidfleet_agent.virtual_phone.scenario.base import Milliseconds, Model, Name, VariablePath
from droidfleet_agent.virtual_phone.scenario.conditions import Condition
from droidfleet_agent.virtual_phone.scenario.template import Template, Value

MAX_ACTIONS = 50
"""Actions in one list; real handlers have fewer than ten."""


class Go(Model):
    """Opens a screen of the same app on top of this one."""

    go: Name = Field(description="The screen's name.")
    replace: bool = Field(False, description="Takes the place of this screen, so that Back does not return to it.")
    clear: bool = Field(False, description="Empties the back stack first, as after a login.")


class Back(Model):
    """Leaves this screen as the Back key would."""

    back: Literal[True]


class OpenDialog(Model):
    """Opens a dialog or pop-up of the app over the screen."""

    dialog: Name = Field(description="The dialog's name.")


class CloseDialog(Model):
    """Closes the topmost dialog."""

    close_dialog: Literal[True]


class Toast(Model):
    """Shows a toast."""

    toast: Template


class Set(Model):
    """Sets variables."""

    set: dict[VariablePath, Value] = Field(min_length=1, max_length=MAX_ACTIONS)


class Add(Model):
    """Adds numbers to variables."""

    add: dict[VariablePath, Value] = Field(min_length=1, max_length=MAX_ACTIONS)


class Toggle(Model):
    """Turns a true variable false and the other way round."""

    toggle: VariablePath


class Append(Model):
    """Adds elements to the end of list variables."""

    append: dict[VariablePath, Value] = Field(min_length=1, max_length=MAX_ACTIONS)


class Remove(Model):
    """Takes one element out of a list variable."""

    remove: VariablePath = Field(description="The list.")
    at: Value = Field(description="The element's position, from 0.")


class Move(Model):
    """Moves one element of a list variable to another place in it. A place outside the list changes nothing."""

    move: VariablePath = Field(description="The list.")
    at: Value = Field(description="The element's position, from 0.")
    to: Value = Field(description="Its new position.")


class Effect(Model):
    """Records a business effect in the effect log: what the outside world would have noticed."""

    effect: Name
    details: dict[str, Value] = Field(default_factory=dict, max_length=MAX_ACTIONS)


class After(Model):
    """Does something later, while this page is still open."""

    after_ms: Milliseconds
    do: Actions


class If(Model):
    """Does one thing or another."""

    if_: Condition = Field(alias="if")
    then: Actions
    else_: Actions = Field((), alias="else")


class OpenApp(Model):
    """Brings another app of the scenario to the front."""

    open_app: Template = Field(description="Its package.")


class FocusField(Model):
    """Puts the input focus on a field of this page and opens the keyboard."""

    focus: Name = Field(description="The field's ``name``.")


class HideKeyboard(Model):
    """Hides the on-screen keyboard."""

    hide_keyboard: Literal[True]


VERBS: Mapping[str, type[Model]] = {
    "go": Go,
    "back": Back,
    "dialog": OpenDialog,
    "close_dialog": CloseDialog,
    "toast": Toast,
    "set": Set,
    "add": Add,
    "toggle": Toggle,
    "append": Append,
    "remove": Remove,
    "move": Move,
    "effect": Effect,
    "after_ms": After,
    "if": If,
    "open_app": OpenApp,
    "focus": FocusField,
    "hide_keyboard": HideKeyboard,
}


def _tag(value: Any) -> str | None:  # pydantic hands over whatever the document holds
    if isinstance(value, dict):
        return next((f"action:{verb}" for verb in VERBS if verb in value), None)
    return next((f"action:{verb}" for verb, model in VERBS.items() if isinstance(value, model)), None)


Action = TypeAliasType(
    "Action",
    Annotated[
        Annotated[Go, Tag("action:go")]
        | Annotated[Back, Tag("action:back")]
        | Annotated[OpenDialog, Tag("action:dialog")]
        | Annotated[CloseDialog, Tag("action:close_dialog")]
        | Annotated[Toast, Tag("action:toast")]
        | Annotated[Set, Tag("action:set")]
        | Annotated[Add, Tag("action:add")]
        | Annotated[Toggle, Tag("action:toggle")]
        | Annotated[Append, Tag("action:append")]
        | Annotated[Remove, Tag("action:remove")]
        | Annotated[Move, Tag("action:move")]
        | Annotated[Effect, Tag("action:effect")]
        | Annotated[After, Tag("action:after_ms")]
        | Annotated[If, Tag("action:if")]
        | Annotated[OpenApp, Tag("action:open_app")]
        | Annotated[FocusField, Tag("action:focus")]
        | Annotated[HideKeyboard, Tag("action:hide_keyboard")],
        Discriminator(_tag),
    ],
)

Actions = TypeAliasType("Actions", Annotated[tuple[Action, ...], Field(max_length=MAX_ACTIONS)])

After.model_rebuild()
If.model_rebuild()
