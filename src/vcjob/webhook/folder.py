"""Certificates that somebody else renews: `tls.crt` and `tls.key` in a folder, as of a mounted Secret.

Read again and again and compared by content, because a mounted Secret changes behind symbolic links.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from .tls import ServingCertificate, UnusableCertificate

__all__ = ("follow_folder",)

log = logging.getLogger(__name__)

_EVERY_S: Final = 5.0


async def follow_folder(
    folder: Path, *, serving: ServingCertificate, tell: list[str], every_s: float = _EVERY_S
) -> None:
    """Serve what is in the folder, for ever; `tell` holds a sentence as long as that cannot be done."""
    seen: tuple[bytes, bytes] | None = None
    while True:
        try:
            found = await asyncio.to_thread(_read, folder)
            if found != seen:
                serving.load(*found)
                seen = found
                log.info("certificate loaded", extra={"folder": str(folder), "ends": str(serving.ends_at)})
            sentence = ""
        except (OSError, UnusableCertificate) as error:
            sentence = f"{folder}: {error}"
            if tell != [sentence]:
                log.warning("certificate cannot be loaded", extra={"folder": str(folder), "error": str(error)})
        tell[:] = [sentence] if sentence else []
        await asyncio.sleep(every_s)


def _read(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()
