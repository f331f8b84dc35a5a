"""`droidfleet-phone`: runs simulated phones for anybody to try, with nothing but adb or uiautomator2.

Owns the command line: its options, what it prints, its exit codes. `server` runs the phones.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from droidfleet_agent.cli.failures import error_text
from droidfleet_agent.virtual_phone.faults import load_faults
from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.latency import PROFILES, latency_profile
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario, shipped_scenarios
from droidfleet_agent.virtual_phone.server import (
    EMULATOR_PORTS,
    LOOPBACK,
    MAX_PHONES,
    PhoneHandle,
    PhoneOptions,
    running_phones,
)
from droidfleet_shared.errors import DroidfleetError, InvalidInputError
from droidfleet_shared.exit_codes import ExitCode, exit_code
from droidfleet_shared.logging import LEVELS, configure_logging
from droidfleet_shared.net import MAX_PORT, Endpoint, require_safe

DEFAULT_PORT = 7101
"""Above the ports where an adb server looks for emulators by itself."""

EPILOG = """examples:
  droidfleet-phone --scenario shop --port 7101
  droidfleet-phone --scenario shop --count 5 --variant-for 5=twin --latency realistic
  droidfleet-phone --scenario my-app.yaml --effects effects.jsonl
  droidfleet-phone --check my-app.yaml

exit codes: 0 stopped by SIGTERM, or the check found nothing; 2 wrong usage, a bad scenario or fault plan;
4 port taken or address refused; 5 a defect; 130 stopped by Ctrl-C"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="droidfleet-phone",
        description="Runs simulated Android phones that the real adb and uiautomator2 drive unmodified.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"droidfleet-phone {version('droidfleet')}")
    what = parser.add_argument_group("what runs")
    what.add_argument(
        "--scenario", default="shop", metavar="NAME|FILE", help="shipped scenario or file (default: shop)"
    )
    what.add_argument("--variant", metavar="NAME", help="variant of the scenario, for every phone")
    what.add_argument(
        "--variant-for",
        action="append",
        default=[],
        metavar="N=NAME",
        help="variant for the Nth phone only, counted from 1; may be given again",
    )
    what.add_argument("--count", type=int, default=1, metavar="N", help=f"how many phones, at most {MAX_PHONES}")
    what.add_argument("--serial-prefix", default="VP", metavar="TEXT", help="of ro.serialno (default: VP)")
    what.add_argument(
        "--model", action="append", metavar="NAME", help="ro.product.model; given again, phones take turns"
    )
    what.add_argument("--seed", type=int, default=0, help="of everything that looks random (default: 0)")
    where = parser.add_argument_group("where")
    where.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        help=f"of the first phone, the others follow; 0: any free ones (default: {DEFAULT_PORT})",
    )
    where.add_argument("--listen", default=LOOPBACK, metavar="ADDRESS", help=f"address (default: {LOOPBACK})")
    where.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address that other machines reach; adb asks for no password, so they control the phones",
    )
    how = parser.add_argument_group("how it behaves")
    how.add_argument(
        "--latency",
        default="zero",
        metavar="PROFILE",
        help=f"{', '.join(PROFILES)}, or delays in ms such as realistic,dump=400 (default: zero)",
    )
    how.add_argument("--faults", type=Path, metavar="FILE", help="what goes wrong, as YAML or JSON")
    how.add_argument("--unauthorized", action="store_true", help="never accept a host: it shows `unauthorized`")
    how.add_argument("--effects", type=Path, metavar="FILE", help="append what the phones saw, one JSON line each")
    other = parser.add_argument_group("other")
    other.add_argument("--list-scenarios", action="store_true", help="print the shipped scenarios and stop")
    other.add_argument("--check", metavar="FILE", help="check a scenario and its variants, print what is wrong, stop")
    other.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json: one line for each phone")
    other.add_argument("--log-level", choices=LEVELS, default="warning")
    return parser


def phone_options(arguments: argparse.Namespace) -> list[PhoneOptions]:
    """What each phone is like. Raises `InvalidInputError` or `DeniedError` for what cannot be."""
    if not 1 <= arguments.count <= MAX_PHONES:
        raise InvalidInputError("BAD_COUNT", f"--count {arguments.count}: from 1 to {MAX_PHONES} phones.")
    if not 0 <= arguments.port <= MAX_PORT - arguments.count + 1:
        raise InvalidInputError("BAD_PORT", f"--port {arguments.port} with --count {arguments.count}: no such ports.")
    require_safe(
        Endpoint(arguments.listen, arguments.port),
        setting="--listen",
        secured=arguments.allow_remote,
        remedy="adb asks for no password: whoever reaches the port controls the phone. Leave --listen out, or add "
        "--allow-remote if the network is yours.",
    )
    variants = _variants(arguments.variant_for, arguments.count)
    faults = load_faults(arguments.faults) if arguments.faults is not None else []
    models: list[str] = arguments.model or [PhoneIdentity().model]
    common = PhoneOptions(
        host=arguments.listen,
        latency=latency_profile(arguments.latency),
        faults=faults,
        effects_path=arguments.effects,
        authorized=not arguments.unauthorized,
    )
    return [
        dataclasses.replace(
            common,
            scenario=load_scenario(arguments.scenario, variant=variants.get(number, arguments.variant)),
            variant=variants.get(number, arguments.variant),
            port=arguments.port + number - 1 if arguments.port else 0,
            identity=PhoneIdentity(
                serial=f"{arguments.serial_prefix}{number:08d}", model=models[(number - 1) % len(models)]
            ),
            seed=arguments.seed + number - 1,
        )
        for number in range(1, arguments.count + 1)
    ]


def _variants(texts: Sequence[str], count: int) -> dict[int, str]:
    variants: dict[int, str] = {}
    for text in texts:
        number, equals, name = text.partition("=")
        if not equals or not name or not number.isdecimal() or not 1 <= int(number) <= count:
            raise InvalidInputError(
                "BAD_VARIANT_FOR",
                f"--variant-for {text}: expected N=NAME with N from 1 to {count}.",
                hint="For example --count 5 --variant-for 5=twin.",
            )
        variants[int(number)] = name
    return variants


async def _run(options: list[PhoneOptions], *, output: str) -> ExitCode:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[ExitCode] = loop.create_future()

    def stop(code: ExitCode) -> None:
        if not stopped.done():
            stopped.set_result(code)

    # Before the phones: a signal while they start stops them as soon as they have.
    loop.add_signal_handler(signal.SIGTERM, stop, ExitCode.OK)
    loop.add_signal_handler(signal.SIGINT, stop, ExitCode.INTERRUPTED)
    async with running_phones(options) as phones:
        if output == "json":
            for phone, wanted in zip(phones, options, strict=True):
                print(json.dumps(_ready(phone, wanted)), flush=True)
        else:
            print(_introduction(phones, options), flush=True)
        return await stopped


def _ready(phone: PhoneHandle, options: PhoneOptions) -> dict[str, object]:
    return {
        "event": "ready",
        "address": phone.address,
        "port": phone.port,
        "serial": options.identity.serial,
        "model": options.identity.model,
        "scenario": phone.phone.scenario.name,
        "variant": options.variant,
    }


def _introduction(phones: list[PhoneHandle], options: list[PhoneOptions]) -> str:
    first = phones[0]
    lines = [
        f"  {phone.address:<22} {wanted.identity.serial}  {wanted.identity.model}  scenario {phone.phone.scenario.name}"
        + (f", variant {wanted.variant}" if wanted.variant else "")
        for phone, wanted in zip(phones, options, strict=True)
    ]
    notes = [
        f"\nnote: an adb server looks for emulators on port {phone.port} by itself; choose one outside "
        f"{EMULATOR_PORTS[0]} to {EMULATOR_PORTS[-1]}."
        for phone in phones
        if phone.port in EMULATOR_PORTS
    ]
    what = "A virtual phone is" if len(phones) == 1 else f"{len(phones)} virtual phones are"
    return (
        f"{what} running:\n" + "\n".join(lines) + "\n\nTry it:\n"
        f"  adb connect {first.address}\n"
        f"  adb -s {first.address} shell dumpsys window windows\n"
        "or from Python:\n"
        "  import uiautomator2\n"
        f'  phone = uiautomator2.connect("{first.address}")\n'
        "  print(phone.app_current(), phone.dump_hierarchy())\n\n"
        "Ctrl-C stops it." + "".join(notes)
    )


def _check(path: str) -> str:
    """What a good scenario contains; raises `InvalidInputError` for a bad one."""
    scenario = load_scenario(path)
    variants = sorted(scenario.variants)
    for variant in variants:
        load_scenario(path, variant=variant)
    apps = ", ".join(app.package for app in scenario.apps)
    return f"{path}: fine. Apps: {apps}." + (f" Variants: {', '.join(variants)}." if variants else "")


def main(argv: Sequence[str] | None = None) -> ExitCode:
    """Runs the command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    configure_logging(arguments.log_level)
    try:
        if arguments.list_scenarios:
            print("\n".join(shipped_scenarios()))
            return ExitCode.OK
        if arguments.check is not None:
            print(_check(arguments.check))
            return ExitCode.OK
        return asyncio.run(_run(phone_options(arguments), output=arguments.output))
    except DroidfleetError as error:
        print(error_text(error), file=sys.stderr)
        return exit_code(error)
