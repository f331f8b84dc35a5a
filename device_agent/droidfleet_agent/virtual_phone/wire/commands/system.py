"""Commands about the phone itself: getprop, wm, id, ifconfig, date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.wire.commands.base import Command, Context, Output, failed, printed

ADDRESS = "10.0.2.15"
"""The phone's own address as its network commands print it. A private one: nothing answers there."""


def properties(phone: VirtualPhone) -> dict[str, str]:
    """The system properties that clients ask for."""
    who = phone.identity
    return {
        "ro.serialno": who.serial,
        "ro.boot.serialno": who.serial,
        "ro.build.version.sdk": str(who.sdk),
        "ro.build.version.release": who.android,
        "ro.product.brand": who.brand,
        "ro.product.manufacturer": who.manufacturer,
        "ro.product.model": who.model,
        "ro.product.name": who.product,
        "ro.product.device": who.device,
        "ro.product.cpu.abi": who.abi,
        "ro.product.cpu.abilist": who.abi,
        "ro.sf.lcd_density": str(who.density_dpi),
        "ro.build.characteristics": "default",
        "ro.debuggable": "0",
        "ro.secure": "1",
        "sys.boot_completed": "1",
        "init.svc.bootanim": "stopped",
        "persist.sys.locale": "en-US",
        "persist.sys.timezone": "UTC",
    }


def _getprop(context: Context, words: Sequence[str]) -> Output:
    found = properties(context.phone)
    if not words:
        return printed("\n".join(f"[{name}]: [{value}]" for name, value in sorted(found.items())))
    default = words[1] if len(words) > 1 else ""
    return Output((found.get(words[0], default) + "\n").encode())


def _wm(context: Context, words: Sequence[str]) -> Output:
    who = context.phone.identity
    match list(words):
        case ["size"]:
            return printed(f"Physical size: {who.width}x{who.height}")
        case ["density"]:
            return printed(f"Physical density: {who.density_dpi}")
        case ["dismiss-keyguard"]:
            context.phone.dismiss_keyguard()
            return Output()
        case _:
            return failed(f"Error: unknown command '{' '.join(words)}'", 255)


def _ifconfig(_context: Context, words: Sequence[str]) -> Output:
    if words and words[0] != "wlan0":
        return failed(f"ifconfig: {words[0]}: No such device")
    return printed(f"wlan0     Link encap:Ethernet\n          inet addr:{ADDRESS}  Mask:255.255.255.0")


def _ip(_context: Context, _words: Sequence[str]) -> Output:
    return printed(f"3: wlan0: <BROADCAST,MULTICAST,UP> mtu 1500\n    inet {ADDRESS}/24 scope global wlan0")


def _date(context: Context, words: Sequence[str]) -> Output:
    now = context.phone.clock.now()
    return printed(str(int(now.timestamp())) if words and words[0] == "+%s" else f"{now:%a %b %d %H:%M:%S UTC %Y}")


SYSTEM_COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "getprop": _getprop,
        "wm": _wm,
        "ifconfig": _ifconfig,
        "ip": _ip,
        "date": _date,
        "id": lambda _context, _words: printed("uid=2000(shell) gid=2000(shell) groups=2000(shell),1004(input)"),
        "whoami": lambda _context, _words: printed("shell"),
        "uname": lambda _context, _words: printed("Linux"),
        "svc": lambda _context, _words: Output(),
        "logcat": lambda _context, _words: Output(),
    }
)
