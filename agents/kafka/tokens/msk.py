"""Tokens for Amazon MSK's IAM, made by Amazon's signer from the machine's credentials.

``"sasl.oauthbearer.token.provider" = "caughtup.agents.kafka.tokens.msk:token"``, and the region in
``"sasl.oauthbearer.config" = "region=eu-central-1"`` or in ``$AWS_REGION``.
"""

from __future__ import annotations

import os

from caughtup.agents.kafka.tokens.token import TokenError
from caughtup.pipelines.extras import install_command

try:
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
except ModuleNotFoundError as error:
    raise ImportError(f"{error.name} is not installed; type: {install_command('msk')}") from None


def token(config: str) -> tuple[str, float]:
    """Return a signed token and its expiry time, in seconds since 1970. Raises TokenError."""
    given = dict(part.partition("=")[::2] for part in config.replace(",", " ").split())
    region = given.get("region") or os.environ.get("AWS_REGION") or _default_region()
    if not region:
        raise TokenError(
            "the region is not known: set sasl.oauthbearer.config to region=NAME, or $AWS_REGION"
        )
    value, expires_ms = MSKAuthTokenProvider.generate_auth_token(region)
    return str(value), expires_ms / 1000


def _default_region() -> str | None:
    return os.environ.get("AWS_DEFAULT_REGION")
