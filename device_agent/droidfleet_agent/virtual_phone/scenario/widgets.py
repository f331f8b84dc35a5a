"""The widgets of a scenario: containers and leaves, sizes in dp. What each looks like is `model/kinds.py`'s to know."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints
from typing_extensions import TypeAliasType

from droidfleet_agent.virtual_phone.scenario.actions import Actions
from droidfleet_agent.virtual_phone.scenario.base import Color, Model, Name, VariablePath
from droidfleet_agent.virtual_phone.scenario.conditions import Condition
from droidfleet_agent.virtual_phone.scenario.template import Template

MAX_CHILDREN = 200
"""Widgets written out in one container; longer ones are lists generated from data."""

MAX_TYPED = 20_000
"""Characters that a field takes, unless it says fewer: more than the longest text that a task may type."""

Dp = Annotated[float, Field(ge=0, le=4000)]
Size = Literal["fill", "wrap"] | Dp
Insets = Dp | tuple[Dp, Dp] | tuple[Dp, Dp, Dp, Dp]
"""One number for all sides; two for horizontal and vertical; four for left, top, right, bottom."""

Alignment = Literal["start", "center", "end"]
ResourceId = Annotated[str, StringConstraints(pattern=r"^([A-Za-z][\w.]*:id/)?[A-Za-z_][\w.]*$", max_length=200)]
ClassName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
TextStyle = Literal["title", "heading", "body", "caption", "price", "link"]


class Base(Model):
    """What every widget may have."""

    name: Name | None = Field(None, description="Names the widget for `focus` and for variants; unique on its screen.")
    id: ResourceId | None = Field(None, description="Resource id; without `pkg:id/` it gets the app's package.")
    class_: ClassName | None = Field(None, alias="class", description="Overrides the widget's Android class name.")
    description: Template | None = Field(None, description="content-desc.")
    width: Size | None = None
    height: Size | None = None
    weight: Annotated[float, Field(gt=0, le=100)] | None = Field(None, description="Share of the free space.")
    padding: Insets | None = None
    margin: Insets | None = None
    align: Alignment | None = Field(None, description="Where it stands across the container's direction.")
    background: Color | None = None
    corner: Dp | None = Field(None, description="Radius of rounded corners.")
    visible_when: Condition | None = Field(None, description="Otherwise it is gone and takes no space.")
    enabled_when: Condition | None = Field(None, description="Otherwise it is disabled and swallows taps.")
    selected_when: Condition | None = None
    clickable: bool | None = Field(None, description="Default: whether it has something to do on a click.")
    focusable: bool | None = None
    on_click: Actions = ()
    on_long_click: Actions = ()
    on_drag: Actions = Field(
        (),
        description="After it was held and moved; `value` is the label where it was let go, `position` the row's.",
    )
    ghost: Literal["zero", "off_screen"] | None = Field(
        None, description="A node without a place: of zero area, or outside the display. It takes no space."
    )


class Container(Base):
    """What containers with written-out children have."""

    children: tuple[Widget, ...] = Field((), max_length=MAX_CHILDREN)
    gap: Dp = 0
    justify: Literal["start", "center", "end", "between"] = "start"
    align_items: Alignment | None = Field(None, description="Default for the children's `align`.")


class Column(Container):
    """Children below each other."""

    type: Literal["column"]


class Row(Container):
    """Children beside each other."""

    type: Literal["row"]


class Stack(Container):
    """Children over each other, the last on top."""

    type: Literal["stack"]


class Canvas(Container):
    """Children over each other that are drawn and not in the tree, as in games and remote screens."""

    type: Literal["canvas"]


class Scroll(Container):
    """Scrolls; every child exists in the tree, those out of sight are not visible."""

    type: Literal["scroll"]
    direction: Literal["vertical", "horizontal"] = "vertical"


class ListWidget(Container):
    """Scrolls and recycles: only the rows in sight exist. Rows come from a list variable, or are written out."""

    type: Literal["list"]
    direction: Literal["vertical", "horizontal"] = "vertical"
    items: VariablePath | None = Field(None, description="The list variable; each element makes one row.")
    item_name: Name = Field("item", alias="as", description="The row's name for its element.")
    where: Condition | None = Field(None, description="Which elements make a row.")
    row: Widget | None = Field(
        None, description="The row's widget; `index` (from 0) and `number` (from 1) are its own."
    )
    columns: Annotated[int, Field(ge=1, le=6)] = 1
    start_at: Literal["start", "end"] = Field("start", description="`end` shows the last rows first, as a chat does.")


class Text(Base):
    """A label."""

    type: Literal["text"]
    text: Template
    style: TextStyle = "body"
    color: Color | None = None
    lines: Annotated[int, Field(ge=1, le=200)] | None = Field(None, description="At most so many lines.")


class Button(Base):
    """A button with a text."""

    type: Literal["button"]
    text: Template
    style: Literal["filled", "outlined", "plain"] = "filled"


class Icon(Base):
    """A small symbol; with something to do on a click it is an image button."""

    type: Literal["icon"]
    icon: Template = Field(description="Name of the symbol; an unknown one is drawn as a circle.")
    color: Color | None = None


class Image(Base):
    """A picture. ``picture`` seeds its colours, so that equal pictures look equal."""

    type: Literal["image"]
    picture: Template | None = None


class Check(Base):
    """A switch, check box or radio button. With ``bind`` it shows and toggles a variable."""

    type: Literal["switch", "checkbox", "radio"]
    text: Template | None = None
    bind: VariablePath | None = None
    checked: bool = Field(False, description="First state without `bind`.")
    checked_when: Condition | None = Field(
        None, description="Shows a condition instead; a click then only runs `on_click`."
    )
    on_change: Actions = Field((), description="Runs after each change; `value` is the new state.")


class FieldWidget(Base):
    """A text field. With ``bind`` its text is a variable, else the page keeps it."""

    type: Literal["field"]
    bind: VariablePath | None = None
    hint: Template | None = None
    kind: Literal["text", "password", "number", "email", "search"] = "text"
    multiline: bool = False
    max_length: Annotated[int, Field(ge=1, le=MAX_TYPED)] = MAX_TYPED
    on_change: Actions = Field((), description="Runs after each change; `value` is the new text.")
    on_submit: Actions = Field((), description="Runs on Enter; `value` is the text.")


class Slider(Base):
    """A seek bar bound to a number; its text in the dump is the number as a float."""

    type: Literal["slider"]
    bind: VariablePath
    minimum: float = 0
    maximum: float = 100


class Progress(Base):
    """A spinner, or with ``value`` (0 to 100) a bar."""

    type: Literal["progress"]
    value: Template | None = None


class Space(Base):
    """Empty space, or with ``background`` a coloured area."""

    type: Literal["space"]


class Divider(Base):
    """A thin line."""

    type: Literal["divider"]


class Tab(Model):
    """One tab: a clickable frame with the same label on itself and on its child."""

    text: Template
    id: ResourceId | None = None
    icon: Name | None = None
    selected_when: Condition | None = None
    on_click: Actions = ()


class Tabs(Base):
    """A bar of tabs of equal width."""

    type: Literal["tabs"]
    tabs: tuple[Tab, ...] = Field(min_length=1, max_length=8)


class Toolbar(Base):
    """The bar on top of a screen: an arrow back, a title, actions."""

    type: Literal["toolbar"]
    title: Template | None = None
    subtitle: Template | None = None
    back: bool = Field(False, description="An arrow (content-desc `Navigate up`) that works as Back.")
    actions: tuple[Widget, ...] = Field((), max_length=10)


Widget = TypeAliasType(
    "Widget",
    Annotated[
        Column
        | Row
        | Stack
        | Canvas
        | Scroll
        | ListWidget
        | Text
        | Button
        | Icon
        | Image
        | Check
        | FieldWidget
        | Slider
        | Progress
        | Space
        | Divider
        | Tabs
        | Toolbar,
        Field(discriminator="type"),
    ],
)

Container.model_rebuild()
Column.model_rebuild()
Row.model_rebuild()
Stack.model_rebuild()
Canvas.model_rebuild()
Scroll.model_rebuild()
ListWidget.model_rebuild()
Toolbar.model_rebuild()
