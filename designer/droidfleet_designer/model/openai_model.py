"""A model behind an OpenAI-compatible API. The one module that imports `openai`."""

from __future__ import annotations

from openai import AsyncOpenAI

__all__ = ["AsyncOpenAI"]
