"""The `Model` over the chat completions of OpenAI and of those who speak like it. The one module that imports openai.

One request for one turn: the library's own repetitions are off, and what goes wrong is told in the port's errors, in
which no key and no header stands. Nothing is read from the environment but, for servers elsewhere, the proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI

from droidfleet_designer.conversation import Answer, Message, Turn
from droidfleet_designer.loop.budget import estimated
from droidfleet_designer.model.assembly import Assembly
from droidfleet_designer.model.failures import Failure, error_of
from droidfleet_designer.model.form import MAX_ADAPTATIONS, Form, adapted, first_form
from droidfleet_designer.model.port import Model, ModelUnavailableError, ToolSpec
from droidfleet_designer.model.settings import ModelSettings
from droidfleet_designer.model.wire import Object, messages_of, tools_of
from droidfleet_shared.clock import Clock, Deadline

NO_KEY = "none"
"""Sent to servers that ask for no key: the library sends something in any case."""

CONNECT_S = 10.0
"""For a connection: a server that takes longer is not there."""

TAIL_S = 5.0
"""From the end of an answer to the end of its stream. What comes then is the count of tokens, at once or never."""

MAX_BYTES = 32 * 1024 * 1024
"""Of one response. Each piece of an answer stands in some 200 bytes of frame, and may be a single character."""

_NOT_REACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


class OpenAIModel(Model):
    """One model of one server. ``clock``: of the deadlines."""

    def __init__(self, settings: ModelSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        # A proxy that the environment names is for the world outside, not for a server on this machine.
        self._http = httpx2.AsyncClient(
            trust_env=not settings.is_local,
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
            follow_redirects=False,
            event_hooks={"response": [_bound_response]},
        )
        self._client = AsyncOpenAI(
            api_key=settings.key or NO_KEY, base_url=settings.base_url, max_retries=0, http_client=self._http
        )
        # What the library takes from the environment belongs to somebody else's account.
        self._client.organization = self._client.project = None
        self._client.admin_api_key = None
        # There is no other way to leave out OPENAI_CUSTOM_HEADERS. Compressed, a small answer may be a huge one.
        self._client._custom_headers = {"Accept-Encoding": "identity"}  # noqa: SLF001
        self._form = first_form(counts_thinking=settings.counts_thinking)

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
        assembly = Assembly(known=known, max_output_tokens=max_output_tokens)
        request = partial(self._request, messages, tools, max_output_tokens)
        error: Exception | None = None
        try:
            async with asyncio.timeout(deadline.remaining()) as timer:
                error = await self._read(request, assembly, heard, timer)
        except TimeoutError:
            error = ModelUnavailableError(
                "the model did not answer in time.", hint="It may be overloaded, or too slow for such a task."
            )
        # A whole answer is not thrown away for what happened after it. Raised here, the error has no other one in its
        # chain: those of the library know the request, and so the key.
        if error is not None and not assembly.whole:
            raise error
        return assembly.turn(input_tokens=estimated(messages, tools))

    def _request(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_output_tokens: int, form: Form
    ) -> Object:
        request: Object = {
            "model": self._settings.model,
            "messages": list(messages_of(messages, sees=self.sees, thoughts=form.thoughts)),
            "tools": list(tools_of(tools)),
            form.bound: max_output_tokens,
        }
        return request | ({"stream_options": {"include_usage": True}} if form.counts else {})

    async def _read(
        self,
        request: Callable[[Form], Object],
        assembly: Assembly,
        heard: Callable[[str], None],
        timer: asyncio.Timeout,
    ) -> Exception | None:
        """Asks; again where the server refused the form, before it generated anything. What went wrong."""
        for left in reversed(range(MAX_ADAPTATIONS + 1)):
            # Others ask meanwhile, and may have found a better one before this complaint comes.
            form = self._form
            try:
                await self._stream(request(form), assembly, heard, timer)
                return None
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                better = adapted(form, str(error.body or error.message)) if left else None
                if better is None:
                    return self._told(error)
                self._form = better
            except (openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError) as error:
                return self._told(error)
        return None

    async def _stream(
        self, request: Object, assembly: Assembly, heard: Callable[[str], None], timer: asyncio.Timeout
    ) -> None:
        create: Any = self._client.chat.completions.create
        stream = await create(stream=True, **request)
        async with stream, aclosing(stream.__aiter__()) as pieces:
            async for piece in pieces:
                before = assembly.whole
                if text := assembly.add(_plain(piece)):
                    heard(text)
                if assembly.full:
                    return
                if assembly.whole and not before:
                    end = asyncio.get_running_loop().time() + TAIL_S
                    timer.reschedule(min(end, timer.when() or end))

    def _told(self, error: Exception) -> Exception:
        body = getattr(error, "body", None)
        response = getattr(error, "response", None)
        headers: Mapping[str, str] = response.headers if response is not None else {}
        said = str(body) if body else str(getattr(error, "message", ""))
        if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | ValueError | RecursionError):
            # The library's own words, or of a text that is no JSON: the server said nothing.
            said = str(error) if isinstance(error, _TooLongError) else ""
        return error_of(
            Failure(
                status=getattr(error, "status_code", None) or _status_in(body),
                said=said,
                retry_after=headers.get("retry-after", ""),
                connected=not isinstance(error.__cause__ or error, _NOT_REACHED),
            ),
            key=self._settings.key,
        )

    async def close(self) -> None:
        await self._client.close()
        await self._http.aclose()


def _status_in(body: object) -> int | None:
    """The status that an error in the middle of a stream says it would have had."""
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else None


def _plain(piece: Any) -> Mapping[str, object]:
    """A piece as it came. Its fields are whatever the server sent, whatever the library's types say."""
    plain = piece.to_dict(mode="python", warnings=False) if hasattr(piece, "to_dict") else piece
    return plain if isinstance(plain, dict) else {}


class _TooLongError(ValueError):
    """More bytes than any answer has."""


class _Bounded(httpx2.AsyncByteStream):
    """A response that ends with an error where it is longer than any answer. The library reads lines, and whole bodies
    of errors, however long they are."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for piece in self._stream:
            length += len(piece)
            if length > MAX_BYTES:
                raise _TooLongError("more bytes than any answer has")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound_response(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _TooLongError("a compressed answer, which was not asked for")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)
