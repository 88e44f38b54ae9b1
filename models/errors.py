"""The errors that the core can raise, each with a stable code."""


class CaughtupError(Exception):
    """An error with a stable ``code`` and one sentence about the cause."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class DecodeError(CaughtupError):
    """Bytes that do not follow their format; the record is counted and skipped."""


class ScenarioError(CaughtupError):
    """An assignment scenario that is contradictory or lacks a field."""


def error_code(error: Exception) -> str:
    """Return an error's code: of a CaughtupError its own, of any other the name of its class."""
    return error.code if isinstance(error, CaughtupError) else type(error).__name__
