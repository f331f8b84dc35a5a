"""Text into fields: set as accessibility sets it, typed as a keyboard types it, deleted, submitted."""

from __future__ import annotations

from droidfleet_agent.virtual_phone.model.assign import assign
from droidfleet_agent.virtual_phone.model.pages import Pages
from droidfleet_agent.virtual_phone.model.performer import Performer, with_value
from droidfleet_agent.virtual_phone.model.state import PageState, PhoneState
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.model.windows import Windows
from droidfleet_agent.virtual_phone.scenario.widgets import FieldWidget

_NUMBER_CHARACTERS = frozenset("0123456789.-+")


class Texts:
    """The fields of one phone."""

    def __init__(self, state: PhoneState, windows: Windows, pages: Pages, performer: Performer) -> None:
        self._state = state
        self._windows = windows
        self._pages = pages
        self._performer = performer

    def focused(self) -> ViewNode | None:
        """The field with the input focus in the active window."""
        active = self._windows.active()
        if active.page.focus is None:
            return None
        return next((node for node in active.root.walk() if node.focused), None)

    def focus(self, node: ViewNode) -> None:
        """Puts the cursor at the end of a field and opens the keyboard."""
        page = self.page_of(node)
        if page is not None:
            page.focus = node.key
            page.cursor = len(node.value)
            self._pages.show_keyboard()

    def page_of(self, node: ViewNode) -> PageState | None:
        """The open page or dialog that a node belongs to; None when it is closed or the phone's own."""
        page = self._state.page
        serial = node.key.partition(":")[0]
        return next((one for one in (page, *page.dialogs) if str(one.serial) == serial), None)

    def put(self, node: ViewNode, text: str, *, cursor: int | None = None) -> bool:
        """Replaces a field's text. False when it is no enabled field of an open page."""
        page = self.page_of(node)
        widget = node.widget
        if page is None or not isinstance(widget, FieldWidget) or not node.enabled:
            return False
        if widget.kind == "number":
            text = "".join(character for character in text if character in _NUMBER_CHARACTERS)
        text = text[: widget.max_length]
        page.cursor = len(text) if cursor is None else min(cursor, len(text))
        if text == node.value:
            return True
        if widget.bind is not None:
            assign(node.scope, widget.bind, text)
        else:
            page.texts[node.key] = text
        self._state.touched()
        self._performer.run(widget.on_change, with_value(node.scope, text), page)
        return True

    def insert(self, text: str) -> bool:
        """Commits text at the cursor of the focused field. False without one."""
        node = self.focused()
        page = None if node is None else self.page_of(node)
        if node is None or page is None:
            return False
        at = min(page.cursor, len(node.value))
        return self.put(node, node.value[:at] + text + node.value[at:], cursor=at + len(text))

    def delete(self, *, forward: bool = False) -> bool:
        """Deletes the character beside the cursor of the focused field. False without one."""
        node = self.focused()
        page = None if node is None else self.page_of(node)
        if node is None or page is None:
            return False
        at = min(page.cursor, len(node.value))
        start, end = (at, at + 1) if forward else (max(0, at - 1), at)
        return self.put(node, node.value[:start] + node.value[end:], cursor=start)

    def move_cursor(self, step: int) -> None:
        """Moves the cursor of the focused field by characters."""
        node = self.focused()
        page = None if node is None else self.page_of(node)
        if node is not None and page is not None:
            page.cursor = min(max(0, page.cursor + step), len(node.value))

    def submit(self) -> None:
        """Enter: a new line in a multi-line field, else the field's own action and the keyboard closes."""
        node = self.focused()
        page = None if node is None else self.page_of(node)
        if node is None or page is None or not isinstance(node.widget, FieldWidget):
            return
        if node.widget.multiline:
            self.insert("\n")
            return
        self._pages.hide_keyboard()
        self._performer.run(node.widget.on_submit, with_value(node.scope, node.value), page)

    def next_field(self) -> None:
        """Tab: the focus goes to the next field of the page."""
        fields = [node for node in self._windows.active().root.walk() if node.editable and node.shown and node.enabled]
        if fields:
            at = next((number for number, node in enumerate(fields) if node.focused), -1)
            self.focus(fields[(at + 1) % len(fields)])
