"""Kubeconfig files: which cluster to speak to, and as whom.

Reads files, opens no connection. Several files are merged as kubectl merges them: the first that names a cluster, a
user, a context or the current context wins, and relative paths are relative to the file that holds them. An error
names the file and the field.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ("CredentialsError", "ExecPlugin", "Login", "read_kubeconfig")

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_UNSUPPORTED_USER_FIELDS = {
    "auth-provider": "it was removed from Kubernetes; use an exec plugin",
    "username": "basic authentication was removed from Kubernetes; use a token or a client certificate",
    "as": "impersonation is not supported; use the credentials of that user",
    "as-groups": "impersonation is not supported; use the credentials of that user",
    "as-uid": "impersonation is not supported; use the credentials of that user",
}


class CredentialsError(Exception):
    """The credentials cannot be used as they are: a file, field or plugin is at fault. The message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A command that prints an ExecCredential."""

    origin: str  # file and field, for errors
    command: str
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    api_version: str
    install_hint: str
    cluster_info: Mapping[str, Any] | None  # handed to the plugin when it asks for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One context of a kubeconfig, resolved: everything needed to speak to its cluster."""

    origin: str  # file and context, for errors and logs
    server: str
    namespace: str
    ca_data: bytes | None = None  # PEM
    ca_file: Path | None = None  # where `ca_data` was read, if in a file
    insecure: bool = False
    tls_server_name: str | None = None
    client_cert: bytes | None = None  # PEM
    client_key: bytes | None = None  # PEM
    token: str | None = None
    token_file: Path | None = None
    plugin: ExecPlugin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A named map of a kubeconfig, and where it stands."""

    file: Path
    field: str
    values: Mapping[str, Any]

    def at(self, name: str) -> str:
        return f"{self.file}: {self.field}.{name}"

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise CredentialsError(f"{self.at(name)} must be a string, not {type(value).__name__}")
        return value

    def path(self, name: str) -> Path | None:
        value = self.text(name)
        return None if value is None else self.file.parent / Path(value).expanduser()

    def pem(self, name: str) -> bytes | None:
        """Return the bytes of `<name>-data`, which wins, or of the file called `name`."""
        data = self.text(f"{name}-data")
        if data is not None:
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except binascii.Error as error:
                raise CredentialsError(f"{self.at(name + '-data')} is not base64: {error}") from error
        path = self.path(name)
        if path is None:
            return None
        try:
            return path.read_bytes()
        except OSError as error:
            raise CredentialsError(f"{self.at(name)}: cannot read {path}: {error.strerror}") from error


def read_kubeconfig(files: tuple[Path, ...], *, context: str | None) -> Login:
    """Return the login of `context` (None: the current one) from the files that exist among `files`."""
    documents = [(file, _load(file)) for file in files if file.exists()]
    where = ", ".join(str(file) for file in files)
    if not documents:
        raise CredentialsError(f"no kubeconfig: {where} does not exist")
    current = context or next((text for _, doc in documents if (text := doc.get("current-context"))), None)
    if not current:
        raise CredentialsError(f"{where}: current-context is not set; name a context")
    chosen = _find(documents, "contexts", current, item="context")
    cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
    if cluster_name is None:
        raise CredentialsError(f"{chosen.at('cluster')} is not set")
    cluster = _find(documents, "clusters", cluster_name, item="cluster")
    user = (
        _Entry(file=chosen.file, field="users", values={})
        if user_name is None
        else _find(documents, "users", user_name, item="user")
    )
    return _resolve(chosen, cluster, user)


def _load(file: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise CredentialsError(f"cannot read {file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise CredentialsError(f"{file} is not YAML: {_in_one_line(error)}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise CredentialsError(f"{file} is not a kubeconfig: it holds a {type(document).__name__}")
    return document


def _in_one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())


def _named(file: Path, document: Mapping[str, Any], section: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise CredentialsError(f"{file}: {section} must be a list, not {type(entries).__name__}")
    for index, entry in enumerate(entries):
        if isinstance(entry, dict):
            yield index, entry


def _find(documents: list[tuple[Path, Mapping[str, Any]]], section: str, name: str, *, item: str) -> _Entry:
    known: list[str] = []
    for file, document in documents:
        for index, entry in _named(file, document, section):
            if entry.get("name") == name:
                field, values = f"{section}[{index}].{item}", entry.get(item) or {}
                if not isinstance(values, dict):
                    raise CredentialsError(f"{file}: {field} must be a map, not {type(values).__name__}")
                return _Entry(file=file, field=field, values=values)
            known.append(str(entry.get("name")))
    where = ", ".join(str(file) for file, _ in documents)
    raise CredentialsError(f"{where}: {section} has no {name!r}; it has {', '.join(known) or 'none'}")


def _resolve(context: _Entry, cluster: _Entry, user: _Entry) -> Login:
    server = cluster.text("server")
    if server is None or not server.startswith(("https://", "http://")):
        raise CredentialsError(f"{cluster.at('server')} must be an http or https URL, not {server!r}")
    if cluster.text("proxy-url"):
        raise CredentialsError(f"{cluster.at('proxy-url')} is set; connections through a proxy are not supported")
    for name, advice in _UNSUPPORTED_USER_FIELDS.items():
        if user.values.get(name):
            raise CredentialsError(f"{user.at(name)} is set: {advice}")
    insecure = cluster.values.get("insecure-skip-tls-verify") is True
    ca_data = cluster.pem("certificate-authority")
    if insecure and ca_data is not None:
        raise CredentialsError(
            f"{cluster.at('insecure-skip-tls-verify')} is set together with certificate-authority; drop one of them"
        )
    client_cert, client_key = user.pem("client-certificate"), user.pem("client-key")
    if (client_cert is None) != (client_key is None):
        missing = "client-key" if client_key is None else "client-certificate"
        raise CredentialsError(f"{user.at(missing)} is not set; a certificate and its key go together")
    return Login(
        origin=f"{context.file}: {context.field}",
        server=server.rstrip("/"),
        namespace=context.text("namespace") or "default",
        ca_data=ca_data,
        ca_file=None if cluster.text("certificate-authority-data") else cluster.path("certificate-authority"),
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name"),
        client_cert=client_cert,
        client_key=client_key,
        token=user.text("token"),
        token_file=user.path("tokenFile"),
        plugin=_plugin(user, cluster, server=server),
    )


def _plugin(user: _Entry, cluster: _Entry, *, server: str) -> ExecPlugin | None:
    values = user.values.get("exec")
    if values is None:
        return None
    if not isinstance(values, dict):
        raise CredentialsError(f"{user.at('exec')} must be a map")
    entry = _Entry(file=user.file, field=f"{user.field}.exec", values=values)
    command, api_version = entry.text("command"), entry.text("apiVersion")
    if command is None:
        raise CredentialsError(f"{entry.at('command')} is not set")
    if api_version not in _EXEC_VERSIONS:
        raise CredentialsError(f"{entry.at('apiVersion')} is {api_version!r}; it must be one of {_EXEC_VERSIONS}")
    if entry.text("interactiveMode") == "Always":
        raise CredentialsError(f"{entry.at('interactiveMode')} is Always, but there is no terminal to ask on")
    if os.sep in command:  # a bare name is looked up in PATH, a path is relative to the file
        command = str(entry.file.parent / command)
    info: dict[str, Any] | None = None
    if entry.values.get("provideClusterInfo") is True:
        info = {"server": server, "tls-server-name": cluster.text("tls-server-name")}
        if (ca_data := cluster.pem("certificate-authority")) is not None:
            info["certificate-authority-data"] = base64.b64encode(ca_data).decode()
        info = {key: value for key, value in info.items() if value is not None}
    return ExecPlugin(
        origin=f"{entry.file}: {entry.field}",
        command=command,
        args=tuple(str(arg) for arg in entry.values.get("args") or ()),
        env=tuple((str(pair.get("name")), str(pair.get("value", ""))) for pair in entry.values.get("env") or ()),
        api_version=api_version,
        install_hint=entry.text("installHint") or "",
        cluster_info=info,
    )
