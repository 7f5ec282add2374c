"""Log lines: a constant fact, then keys and values; as text for people or JSON for machines."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

__all__ = ("set_up_logging",)

_SPECIAL: Final = frozenset(' "=')  # what a value without quotes cannot hold
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "settings",
    "k8s_ref",
    "k8s_skip",
    "taskName",
}


def set_up_logging(*, level: str, form: str) -> None:
    """Send all log lines to standard error. `level` is a name of the logging module, `form` is text or json."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    if root.level > logging.DEBUG:
        handler.addFilter(_fold)
    for noisy in ("kopf", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


def _fold(record: logging.LogRecord) -> bool:
    """Make one line of what kopf could not do: its traces lead through kopf and tell no more than the error does."""
    if record.name.startswith("kopf") and record.exc_info:
        record.exc_info = record.exc_text = None
    return True


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        words = [time, f"{record.levelname:<7}", record.getMessage()]
        words += [f"{key}={_quoted(value)}" for key, value in _extras(record).items()]
        line = " ".join(words)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _quoted(value: Any) -> str:
    text = str(value)
    is_plain = text and text.isprintable() and not _SPECIAL.intersection(text)
    return text if is_plain else msgspec.json.encode(text).decode()


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{
                key: value if isinstance(value, bool | int | float | str) or value is None else str(value)
                for key, value in _extras(record).items()
            },
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
