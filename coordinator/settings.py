"""A coordinator's settings, from `HEADWAY_*` environment variables or given in code."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Both URLs may carry credentials; they are never logged."""

    model_config = SettingsConfigDict(env_prefix="HEADWAY_", frozen=True)

    nats_url: SecretStr = Field(description="nats://user:password@host:port, several by commas")
    postgres_url: SecretStr = Field(
        description="postgresql://user:password@host:port/database, several host:port by commas"
    )
    require_tokens: bool = Field(
        default=False, description="refuse people who show no token, even while there are none"
    )
    http: str = Field(default="", description="host:port to serve HTTP at; off without one")
    http_fd: int | None = Field(
        default=None, description="a socket that listens and was inherited, in place of `http`"
    )
    http_cert: Path | None = Field(default=None, description="certificates for TLS on HTTP, PEM")
    http_key: Path | None = Field(default=None, description="their key, PEM")
    console_token: SecretStr = Field(
        default=SecretStr(""), description="good on HTTP only, with role operate"
    )
    trace_link: str = Field(
        default="",
        pattern=r"^(https?://[^\s]*\{trace\}[^\s]*)?$",
        description="where the console finds a trace: an http(s) address with {trace} for its id",
    )
    replicas: int = Field(default=1, ge=1, le=5, description="copies of each stream: 1, 3 or 5")
