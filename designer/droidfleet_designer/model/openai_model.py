"""The `Model` over the chat completions of OpenAI and of those who speak like it. The one module that imports openai.

One request for one turn: the library's own repetitions are off, and what goes wrong is told in the port's errors, in
which no key and no header stands. Nothing is read from the environment but, for servers elsewhere, the proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI

from droidfleet_designer.conversation import Answer, Message, Turn
from droidfleet_designer.loop.budget import estimated
from droidfleet_designer.model.assembly import Assembly
from droidfleet_designer.model.failures import Failure, error_of
from droidfleet_designer.model.port import Model, ModelUnavailableError, ToolSpec
from droidfleet_designer.model.settings import ModelSettings
from droidfleet_designer.model.wire import Object, messages_of, tools_of
from droidfleet_shared.clock import Clock, Deadline

NO_KEY = "none"
"""Sent to servers that ask for no key: the library sends something in any case."""

CONNECT_S = 10.0
"""For a connection: a server that takes longer is not there."""

_UNKNOWN = ("stream_options", "max_completion_tokens", "max_tokens")
"""Fields of a request that some server does not know, and says so by their name."""


class OpenAIModel(Model):
    """One model of one server. ``clock``: of the deadlines."""

    def __init__(self, settings: ModelSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        # A proxy that the environment names is for the world outside, not for a server on this machine.
        self._http = httpx2.AsyncClient(
            trust_env=not settings.is_local, timeout=httpx2.Timeout(None, connect=CONNECT_S), follow_redirects=False
        )
        self._client = AsyncOpenAI(
            api_key=settings.key or NO_KEY, base_url=settings.base_url, max_retries=0, http_client=self._http
        )
        # What the library takes from the environment belongs to somebody else's account.
        self._client.organization = self._client.project = None
        self._client.admin_api_key = None
        self._client._custom_headers = {}  # noqa: SLF001 - there is no other way to leave out OPENAI_CUSTOM_HEADERS
        self._bound = "max_completion_tokens" if settings.counts_thinking else "max_tokens"
        self._counts = True

    @property
    def name(self) -> str:
        return self._settings.model

    @property
    def sees(self) -> bool:
        return self._settings.sees

    async def answer(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec],
        max_output_tokens: int,
        deadline: Deadline,
        heard: Callable[[str], None],
    ) -> Turn:
        known = {call.id for each in messages if isinstance(each, Answer) for call in each.calls}
        assembly = Assembly(known=known)
        request: Object = {
            "messages": list(messages_of(messages, sees=self.sees)),
            "tools": list(tools_of(tools)),
        }
        try:
            async with asyncio.timeout(deadline.remaining()):
                await self._read(request, max_output_tokens, assembly, heard)
        except TimeoutError:
            raise ModelUnavailableError(
                "the model did not answer in time.", hint="It may be overloaded, or too slow for such a task."
            ) from None
        return assembly.turn(input_tokens=estimated(messages, tools))

    async def _read(
        self, request: Object, max_output_tokens: int, assembly: Assembly, heard: Callable[[str], None]
    ) -> None:
        """Asks, and once more where the server refused the form before it generated anything."""
        for again in (True, False):
            try:
                await self._stream(request, max_output_tokens, assembly, heard)
                return
            except openai.BadRequestError as error:
                if not (again and self._adapts(str(error.body or error.message))):
                    raise self._told(error) from None
            except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
                raise self._told(error) from None

    async def _stream(
        self, request: Object, max_output_tokens: int, assembly: Assembly, heard: Callable[[str], None]
    ) -> None:
        optional: dict[str, Any] = {self._bound: max_output_tokens}
        if self._counts:
            optional["stream_options"] = {"include_usage": True}
        create: Any = self._client.chat.completions.create
        stream = await create(model=self._settings.model, stream=True, **request, **optional)
        async with stream, aclosing(stream.__aiter__()) as pieces:
            async for piece in pieces:
                if text := assembly.add(_plain(piece)):
                    heard(text)
                if assembly.full:
                    return

    def _adapts(self, complaint: str) -> bool:
        """Whether the next request will do without what the server complains of."""
        named = next((each for each in _UNKNOWN if f"'{each}'" in complaint or f"`{each}`" in complaint), "")
        named = named or next((each for each in _UNKNOWN if each in complaint), "")
        if named == "stream_options" and self._counts:
            self._counts = False
            return True
        if named == self._bound:
            self._bound = "max_tokens" if named == "max_completion_tokens" else "max_completion_tokens"
            return True
        return False

    def _told(self, error: Exception) -> Exception:
        body = getattr(error, "body", None)
        response = getattr(error, "response", None)
        headers: Mapping[str, str] = response.headers if response is not None else {}
        return error_of(
            Failure(
                status=getattr(error, "status_code", None),
                said=str(body) if body else str(getattr(error, "message", "")),
                retry_after=headers.get("retry-after", ""),
                timed_out=isinstance(error, openai.APITimeoutError | httpx2.TimeoutException),
                connected=not isinstance(error, openai.APIConnectionError | httpx2.ConnectError),
            ),
            key=self._settings.key,
        )

    async def close(self) -> None:
        await self._client.close()
        await self._http.aclose()


def _plain(piece: Any) -> Mapping[str, object]:
    """A piece as it came. Its fields are whatever the server sent, whatever the library's types say."""
    plain = piece.to_dict(mode="python", warnings=False) if hasattr(piece, "to_dict") else piece
    return plain if isinstance(plain, dict) else {}
