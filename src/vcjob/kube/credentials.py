"""Credentials: how this process proves to the API server who it is.

Owns the TLS context and the token, and renews them: a token file is read again at most once a minute and whenever the
server refused it, an exec plugin is run again when its credential runs out or was refused, a file of authorities is
read again when the server could not be reached. Callers ask for `headers()` before a request, call `renew()` after a
401 and `renew_trust()` when there was no answer; they never hold a token themselves.
"""

import asyncio
import logging
import os
import re
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, Self

import msgspec

from vcjob.kube.clock import steady
from vcjob.kube.kubeconfig import CredentialsError, ExecPlugin, Login, read_kubeconfig

__all__ = ("Credentials", "CredentialsError", "load_credentials")

log = logging.getLogger(__name__)

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_FILE_MAX_AGE_S: Final = 60.0
_PLUGIN_TIMEOUT_S: Final = 60.0
_PLUGIN_LEEWAY_S: Final = 30.0  # a credential this close to its end counts as run out
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")  # what can stand in a header
_RENEW_MIN_AGE_S: Final = 1.0  # many requests refused at once renew once


class _TokenSource(Protocol):
    """Where tokens come from."""

    async def token(self) -> str | None: ...

    async def renew(self) -> None: ...


class Credentials:
    """Server, trust and identity of one connection to an API server."""

    def __init__(self, login: Login) -> None:
        self.origin = login.origin
        self.server = login.server
        self.namespace = login.namespace
        self.ssl_context = _Context(login) if login.server.startswith("https://") else None
        self._source = _token_source(login, load_certificate=self._load_certificate)
        self._token: str | None = None
        self._headers: Mapping[str, str] = {}
        self._renewed_at = -_RENEW_MIN_AGE_S
        self._ca_file = login.ca_file
        self._ca_fault = ""  # what was logged last
        self._ca_read_at = -_RENEW_MIN_AGE_S
        self._renewing = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """Return the headers that authenticate a request; the same object as long as they do not change."""
        token = await self._source.token()
        if token != self._token:
            self._token = token
            self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self._headers

    async def renew(self) -> None:
        """Drop what the server refused; the next `headers()` has new ones if there are any."""
        async with self._renewing:
            if steady() - self._renewed_at < _RENEW_MIN_AGE_S:
                return
            await self._source.renew()
            self._renewed_at = steady()

    def renew_trust(self) -> None:
        """Trust the authorities that are in their file now, and no others; those of before if it cannot be read."""
        if self._ca_file is None or self.ssl_context is None or steady() - self._ca_read_at < _RENEW_MIN_AGE_S:
            return
        self._ca_read_at = steady()
        try:
            renewed = self.ssl_context.trust(self._ca_file.read_bytes())
        except (CredentialsError, OSError) as error:
            if str(error) != self._ca_fault:
                self._ca_fault = str(error)
                log.warning("old authorities are kept", extra={"because": self._ca_fault})
        else:
            self._ca_fault = ""
            if renewed:
                log.info("authorities renewed", extra={"file": str(self._ca_file)})

    def _load_certificate(self, certificate: bytes, key: bytes) -> None:
        if self.ssl_context is not None:
            self.ssl_context.show(certificate, key)


def load_credentials(*, kubeconfig: Path | None, context: str | None) -> Credentials:
    """Find the credentials of this process.

    In this order: the file `kubeconfig`; the files of $KUBECONFIG; the service account, when running in a Pod and no
    `context` is named; ~/.kube/config. Raises CredentialsError.
    """
    try:
        return _find_credentials(kubeconfig=kubeconfig, context=context)
    except (AttributeError, OSError, RecursionError, TypeError, ValueError) as error:
        # Whatever else a file may hold that no kubeconfig should.
        raise CredentialsError(f"the credentials cannot be used: {type(error).__name__}: {error}") from error


def _find_credentials(*, kubeconfig: Path | None, context: str | None) -> Credentials:
    if kubeconfig is not None:
        return Credentials(read_kubeconfig((kubeconfig,), context=context))
    listed = tuple(Path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part)
    if listed:
        return Credentials(read_kubeconfig(listed, context=context))
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return Credentials(_service_account(_SERVICE_ACCOUNT))
    return Credentials(read_kubeconfig((Path("~/.kube/config").expanduser(),), context=context))


def _service_account(folder: Path) -> Login:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        (folder / "token").stat()
        ca_data = (ca_file := folder / "ca.crt").read_bytes()
    except OSError as error:
        raise CredentialsError(
            f"KUBERNETES_SERVICE_HOST is set, but the service account cannot be read: {error}; "
            "set automountServiceAccountToken or name a kubeconfig"
        ) from error
    try:
        namespace = (folder / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    return Login(
        origin=str(folder),
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace or "default",
        ca_data=ca_data,
        ca_file=ca_file,
        token_file=folder / "token",
    )


# TLS


class _Context(ssl.SSLContext):
    """A TLS context behind which another one works: who was given this one need not know when that is replaced.

    It also expects the server to have another name than the URL has, if the login says so (tls-server-name): set here
    and not at each request, so that every user of the session gets it.
    """

    _login: Login
    _behind: ssl.SSLContext
    _ca_data: bytes | None
    _identity: tuple[bytes, bytes] | None

    def __new__(cls, login: Login) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, login: Login) -> None:
        self._login, self._ca_data, self._identity = login, login.ca_data, None
        if login.client_cert is not None and login.client_key is not None:
            self._identity = login.client_cert, login.client_key
        self._behind = self._make(login.ca_data)

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        if self._login.tls_server_name is not None:
            kwargs["server_hostname"] = self._login.tls_server_name
        return self._behind.wrap_bio(*args, **kwargs)

    def trust(self, ca_data: bytes) -> bool:
        """Trust these authorities, in PEM, instead of those of before; False when they are the same.

        Raises CredentialsError.
        """
        if ca_data == self._ca_data:
            return False
        self._behind, self._ca_data = self._make(ca_data), ca_data
        return True

    def show(self, certificate: bytes, key: bytes) -> None:
        """Show the server this certificate from now on. Raises ssl.SSLError."""
        _load_cert_chain(self._behind, certificate, key)
        self._identity = certificate, key

    def _make(self, ca_data: bytes | None) -> ssl.SSLContext:
        origin, context = self._login.origin, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self._login.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif ca_data is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cadata=ca_data.decode("ascii"))
            except (ssl.SSLError, ValueError) as error:
                raise CredentialsError(f"{origin}: the certificate authority is not PEM: {error}") from error
        if self._identity is not None:
            try:
                _load_cert_chain(context, *self._identity)
            except ssl.SSLError as error:
                raise CredentialsError(f"{origin}: client certificate and key do not fit: {error}") from error
        return context


def _load_cert_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # The ssl module reads keys from files only; this one is readable by us alone and gone at once.
    with tempfile.NamedTemporaryFile(buffering=0, suffix=".pem") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(file.name, password="")  # a key that needs one fails, instead of asking the terminal


# Tokens


def _token_source(login: Login, *, load_certificate: Callable[[bytes, bytes], None]) -> _TokenSource:
    if login.token_file is not None:  # wins over `token`, as with kubectl
        return _TokenFile(login.token_file)
    if login.token is not None:
        return _FixedToken(login.token)
    if login.plugin is not None:
        return _PluginToken(login.plugin, load_certificate=load_certificate, run=_run_plugin)
    return _FixedToken(None)


class _FixedToken:
    def __init__(self, token: str | None) -> None:
        self._token = token

    async def token(self) -> str | None:
        return self._token

    async def renew(self) -> None:
        """There is no other."""


class _TokenFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._token: str | None = None
        self._read_at = 0.0
        self._fault = ""  # what was logged last

    async def token(self) -> str | None:
        now = steady()
        if self._token is None or now - self._read_at >= _TOKEN_FILE_MAX_AGE_S:
            self._read(now)
        return self._token

    async def renew(self) -> None:
        self._read(steady())

    def _read(self, now: float) -> None:
        try:
            self._token, self._read_at, self._fault = self._load(), now, ""
        except CredentialsError as error:
            if self._token is None:
                raise
            # It is being replaced, or the mount is slow: the old one may still be good.
            self._read_at = now - _TOKEN_FILE_MAX_AGE_S + _RENEW_MIN_AGE_S
            if str(error) != self._fault:
                self._fault = str(error)
                log.warning("old token is kept", extra={"because": self._fault})

    def _load(self) -> str:
        # A projected token is a few KB on tmpfs: reading it in the loop costs less than a thread.
        try:
            token = self._path.read_text(errors="replace").strip()
        except OSError as error:
            raise CredentialsError(f"cannot read the token file {self._path}: {error.strerror}") from error
        if not token:
            raise CredentialsError(f"the token file {self._path} is empty")
        if _TOKEN.fullmatch(token) is None:
            raise CredentialsError(f"the token file {self._path} holds no token")
        return token


@dataclass(frozen=True, slots=True, kw_only=True)
class _PluginAnswer:
    token: str | None
    certificate: bytes | None
    key: bytes | None
    expires: datetime | None


class _PluginToken:
    def __init__(
        self,
        plugin: ExecPlugin,
        *,
        load_certificate: Callable[[bytes, bytes], None],
        run: Callable[[ExecPlugin], Awaitable[_PluginAnswer]],
    ) -> None:
        self._plugin = plugin
        self._load_certificate = load_certificate
        self._run = run
        self._answer: _PluginAnswer | None = None
        self._running = asyncio.Lock()

    async def token(self) -> str | None:
        answer = self._answer
        if answer is None or _has_run_out(answer):
            async with self._running:
                answer = self._answer
                if answer is None or _has_run_out(answer):
                    answer = await self._fetch()
        return answer.token

    async def renew(self) -> None:
        async with self._running:
            await self._fetch()

    async def _fetch(self) -> _PluginAnswer:
        answer = await self._run(self._plugin)
        if answer.certificate is not None and answer.key is not None:
            self._load_certificate(answer.certificate, answer.key)
        self._answer = answer
        return answer


def _has_run_out(answer: _PluginAnswer) -> bool:
    return answer.expires is not None and (answer.expires - datetime.now(UTC)).total_seconds() < _PLUGIN_LEEWAY_S


async def _run_plugin(plugin: ExecPlugin) -> _PluginAnswer:
    request: dict[str, Any] = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    if plugin.cluster_info is not None:
        request["spec"]["cluster"] = plugin.cluster_info
    env = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": msgspec.json.encode(request).decode()}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise CredentialsError(f"{plugin.origin}: cannot run {plugin.command}: {error.strerror}{hint}") from error
    try:
        async with asyncio.timeout(_PLUGIN_TIMEOUT_S):
            output, complaint = await process.communicate()
    except TimeoutError as error:
        raise CredentialsError(f"{plugin.origin}: no answer within {_PLUGIN_TIMEOUT_S:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        words = complaint.decode(errors="replace").strip()[-1000:]
        raise CredentialsError(f"{plugin.origin}: exit code {process.returncode}: {words}")
    return _read_answer(plugin, output)


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    status: _ExecStatus


def _read_answer(plugin: ExecPlugin, output: bytes) -> _PluginAnswer:
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.MsgspecError as error:
        raise CredentialsError(f"{plugin.origin}: the answer is no ExecCredential: {error}") from error
    if credential.api_version != plugin.api_version:
        raise CredentialsError(
            f"{plugin.origin}: asked for {plugin.api_version}, the answer is {credential.api_version}"
        )
    status = credential.status
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise CredentialsError(f"{plugin.origin}: the answer has neither a token nor a client certificate")
    return _PluginAnswer(
        token=status.token,
        certificate=status.client_certificate_data.encode() if status.client_certificate_data else None,
        key=status.client_key_data.encode() if status.client_key_data else None,
        expires=status.expiration_timestamp,
    )
