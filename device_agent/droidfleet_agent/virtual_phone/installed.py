"""The packages that the package manager lists: the phone's own, the scenario's apps, keyboards installed later."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from droidfleet_agent.virtual_phone.facts import InstalledPackage
from droidfleet_agent.virtual_phone.scenario.models import App


def installed_packages(
    apps: Iterable[App], keyboards: Iterable[str], label: Callable[[App], str]
) -> tuple[InstalledPackage, ...]:
    """Every package, by name. ``keyboards`` names packages of input methods; one that is no app has no screens."""
    found = {app.package: _of(app, label(app)) for app in apps}
    for package in keyboards:
        found.setdefault(package, InstalledPackage(package, package, "1.0", 1, False, "", _path(package, system=False)))
    return tuple(found[package] for package in sorted(found))


def _of(app: App, label: str) -> InstalledPackage:
    return InstalledPackage(
        package=app.package,
        label=label,
        version_name=app.version,
        version_code=app.version_code,
        system=app.system,
        main_activity=app.activity_name(app.home),
        path=_path(app.package, system=app.system),
    )


def _path(package: str, *, system: bool) -> str:
    return f"/{'system' if system else 'data'}/app/{package}/base.apk"
