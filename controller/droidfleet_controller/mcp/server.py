"""The tools as the Model Context Protocol has them: their list, calls, results and errors."""

from __future__ import annotations

import base64
import json
from importlib.metadata import version

import mcp_types as types
import structlog
from mcp.server import Server, ServerRequestContext
from pydantic import ValidationError

from droidfleet_controller.mcp.answers import ToolResult, of_error, of_outcome
from droidfleet_controller.mcp.fleet import FleetTools
from droidfleet_controller.mcp.leases import Leases
from droidfleet_controller.mcp.phones import ApiPhones
from droidfleet_controller.mcp.tools import LEASE, OWN, tools
from droidfleet_designer.observation.quoting import FROM_THE_SCREEN
from droidfleet_designer.tools.arguments import ListDevices
from droidfleet_designer.tools.telling import bad_arguments, devices_in_words, groups_in_words
from droidfleet_shared.errors import DroidfleetError, InvalidInputError

log = structlog.get_logger(__name__)

INSTRUCTIONS = (
    "Works Android phones of a fleet. Take a phone with lease_device, look with screen, act on the numbered elements "
    f"of the newest screen, and give it back with release_device. {FROM_THE_SCREEN} Calls whose effect cannot be "
    "undone are withheld: ask the person, and do not look for a way around that."
)

Context = ServerRequestContext[object]


class Tools:
    """Carries calls out, whoever they come from."""

    def __init__(self, *, leases: Leases, fleet: FleetTools, phones: ApiPhones) -> None:
        self._leases = leases
        self._fleet = fleet
        self._phones = phones

    def server(self) -> Server[object]:
        """The protocol's server over them."""
        return Server(
            "droidfleet",
            version=version("droidfleet"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, _context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.spec.description,
                    input_schema=dict(tool.spec.parameters),
                    annotations=types.ToolAnnotations(read_only_hint=not tool.acts, open_world_hint=tool.acts),
                )
                for name, tool in tools().items()
            ]
        )

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            result = await self._carry_out(params.name, dict(params.arguments or {}), context)
        except DroidfleetError as error:
            result = of_error(error)
        except ValidationError as error:
            result = ToolResult(bad_arguments(params.name, error), code="BAD_ARGUMENTS")
        except Exception:
            # A defect of ours; the client goes on, and the log says where it was.
            log.exception("tool_broke", tool=params.name)
            result = ToolResult("INTERNAL: this server made a mistake; its log says where.", code="INTERNAL")
        return _result(result)

    async def _carry_out(self, name: str, arguments: dict[str, object], context: Context) -> ToolResult:
        tool = tools().get(name)
        if tool is None:
            raise InvalidInputError(
                "UNKNOWN_TOOL", f"there is no tool {name!r}.", hint=f"There are: {', '.join(tools())}."
            )

        async def progress(done: float, total: float, word: str) -> None:
            await context.session.report_progress(done, total, word)

        if name in OWN:
            asked = OWN[name].model_validate(arguments)
            return await self._fleet.call(asked, progress=progress)
        if not tool.leased:
            ListDevices.model_validate(arguments)
            if name == "list_devices":
                return ToolResult(devices_in_words(await self._phones.devices(), explored=""))
            return ToolResult(groups_in_words(await self._phones.groups()))
        lease = arguments.pop(LEASE, None)
        if not isinstance(lease, str):
            raise InvalidInputError("BAD_ARGUMENTS", "lease: missing.", hint="Take a phone with lease_device first.")
        return of_outcome(await self._leases.call(lease, name, json.loads(json.dumps(arguments))))


def _result(result: ToolResult) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.text)]
    if result.shot is not None:
        data = base64.b64encode(result.shot.data).decode()
        content.append(types.ImageContent(type="image", data=data, mime_type=result.shot.media_type))
    facts = dict(result.facts or {})
    if result.code:
        facts["code"] = result.code
    return types.CallToolResult(content=content, structured_content=facts or None, is_error=bool(result.code))
