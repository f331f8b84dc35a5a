"""What is in front: apps, back stacks, dialogs, launcher, keyboard. Opens and closes; runs no actions itself."""

from __future__ import annotations

from collections.abc import Callable

from droidfleet_agent.virtual_phone.model.state import MAX_STACK, AppState, PageState, PhoneState, first_variables
from droidfleet_agent.virtual_phone.scenario.models import App, Page
from droidfleet_agent.virtual_phone.scenario.template import copied


class Pages:
    """Changes what one phone shows. ``on_opened`` is told of each new page, after it is in front."""

    on_opened: Callable[[PageState], None]

    def __init__(self, state: PhoneState) -> None:
        self._state = state

    # -- pages ---------------------------------------------------------------------------------------------------

    def _new_page(self, app: AppState, name: str, definition: Page) -> PageState:
        state = self._state
        state.pages_opened += 1
        variables = {key: copied(value) for key, value in definition.state.items()}
        return PageState(state.pages_opened, app, name, definition, variables)

    def _opened(self, page: PageState) -> None:
        self._state.keyboard = False
        self._state.window_changed()
        self.on_opened(page)

    def open_screen(self, app: AppState, name: str, *, replace: bool = False, clear: bool = False) -> PageState:
        """Opens a screen on top of the app's back stack."""
        if clear:
            self._close_all(app.stack)
        elif replace and app.stack:
            self._close_all(app.stack, keep=len(app.stack) - 1)
        page = self._new_page(app, name, app.app.screens[name])
        app.stack.append(page)
        if len(app.stack) > MAX_STACK:
            self._close(app.stack.pop(0))
        self._opened(page)
        return page

    def close_page(self) -> None:
        """What Back does inside an app: closes the dialog, else the page, else leaves the app."""
        state = self._state
        if state.page.dialogs:
            self.close_dialog()
        elif len(state.app.stack) > 1:
            self._close(state.app.stack.pop())
            state.keyboard = False
            state.window_changed()
        elif state.front != state.launcher:
            self.go_home()

    def open_dialog(self, app: AppState, name: str) -> None:
        """Opens a dialog over the app's top screen."""
        if not app.stack or len(app.stack[-1].dialogs) >= MAX_STACK:
            return
        dialog = self._new_page(app, name, app.app.dialogs[name])
        app.stack[-1].dialogs.append(dialog)
        self._opened(dialog)

    def close_dialog(self) -> None:
        """Closes the topmost dialog, if any."""
        dialogs = self._state.page.dialogs
        if dialogs:
            self._close(dialogs.pop())
            self._state.keyboard = False
            self._state.window_changed()

    def _close_all(self, pages: list[PageState], keep: int = 0) -> None:
        for page in pages[keep:]:
            self._close(page)
        del pages[keep:]

    def _close(self, page: PageState) -> None:
        page.open = False
        for dialog in page.dialogs:
            dialog.open = False

    # -- apps ----------------------------------------------------------------------------------------------------

    def go_home(self) -> None:
        """The launcher's home screen comes to the front."""
        launcher = self._state.apps[self._state.launcher]
        self._front(launcher)
        if not launcher.stack or launcher.stack[-1].name != launcher.app.home:
            self.open_screen(launcher, launcher.app.home, clear=True)

    def show_recents(self) -> None:
        """The overview of recent tasks comes to the front."""
        state = self._state
        launcher = state.apps[state.launcher]
        launcher.variables["recent"] = [
            {"package": package, "label": self.label_of(state.apps[package].app)}
            for package in state.recent
            if state.apps[package].stack
        ]
        self._front(launcher)
        self.open_screen(launcher, "recents", clear=True)

    def label_of(self, app: App) -> str:
        """The app's name for people."""
        state = self._state.apps.get(app.package)
        variables = first_variables(app) if state is None else state.variables
        return app.label.text((variables, self._state.facts))

    def start_app(self, package: str, screen: str | None = None) -> bool:
        """Brings an app to the front. False for a package that has no screens here."""
        state = self._state
        app = state.apps.get(package)
        if app is None or (screen is None and app.app.home not in app.app.screens):
            return False
        self._front(app)
        if package != state.launcher:
            state.recent = [package, *(other for other in state.recent if other != package)]
        if not app.stack:
            self.open_screen(app, screen or app.app.home)
        elif screen is not None and app.stack[-1].name != screen:
            self.open_screen(app, screen)
        return True

    def _front(self, app: AppState) -> None:
        state = self._state
        state.shade = None
        state.keyboard = False
        if state.front != app.app.package:
            state.front = app.app.package
            state.window_changed()
        state.touched()

    def stop_app(self, package: str) -> bool:
        """Ends an app; the launcher comes to the front when it was. False for an unknown package."""
        state = self._state
        app = state.apps.get(package)
        if app is None:
            return False
        if package == state.front and package != state.launcher:
            self.go_home()
        if package != state.launcher:
            self._close_all(app.stack)
        return True

    def clear_app(self, package: str) -> bool:
        """Ends an app and gives it its first variables again."""
        if not self.stop_app(package):
            return False
        app = self._state.apps[package]
        app.variables = first_variables(app.app)
        return True

    # -- keyboard ------------------------------------------------------------------------------------------------

    def show_keyboard(self) -> None:
        """Opens the on-screen keyboard."""
        state = self._state
        state.capitals = state.symbols = False
        state.keyboard = state.has_keyboard
        state.touched()

    def hide_keyboard(self) -> None:
        """Closes the on-screen keyboard; the field keeps its focus."""
        if self._state.keyboard:
            self._state.keyboard = False
            self._state.touched()
