"""The settings for stores: the address of S3, and its credentials."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, field_validator, model_validator

#: Without a path, and without a user name, which could come with a password.
_ENDPOINT = re.compile(r"https?://[^\s/@?#]+/?", re.ASCII)


class StoreSettings(BaseModel):
    """The settings for S3, for checkpoints of Spark's queries and the history's tables."""

    s3_endpoint: str | None = Field(
        default=None,
        description="The address of an S3 that isn't Amazon's, for checkpoints and the history's "
        "tables. What is not set of an S3 is what AWS_ENDPOINT_URL, AWS_REGION and the like say.",
        examples=["https://s3.example.com:9000"],
    )
    s3_region: str | None = Field(
        default=None, min_length=1, description="Its region.", examples=["eu-central-1"]
    )
    s3_access_key: str | None = Field(
        default=None,
        min_length=1,
        description="The id of the access key.",
        examples=["AKIAEXAMPLE"],
    )
    s3_secret_key_file: Path | None = Field(
        default=None,
        description="A file with the secret of the access key. It is read again when it changes.",
        examples=["/etc/caughtup/s3.secret"],
    )
    s3_session_token_file: Path | None = Field(
        default=None,
        description="A file with the session's token, where the access key is one for a while. It "
        "is read again when it changes.",
        examples=["/etc/caughtup/s3.token"],
    )

    @field_validator("s3_endpoint")
    @classmethod
    def _is_an_endpoint(cls, given: str | None) -> str | None:
        if given is not None and not _ENDPOINT.fullmatch(given):
            raise ValueError("http://HOST:PORT or https://HOST:PORT is expected")
        return given

    @model_validator(mode="after")
    def _has_both_keys(self) -> Self:
        if (self.s3_access_key is None) != (self.s3_secret_key_file is None):
            raise ValueError("s3_access_key and s3_secret_key_file need each other")
        if self.s3_session_token_file is not None and self.s3_access_key is None:
            raise ValueError("s3_session_token_file needs s3_access_key")
        return self
