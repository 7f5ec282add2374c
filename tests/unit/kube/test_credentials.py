"""Credentials: every form they come in, and the words when one is wrong. TLS is tried against the fake server."""

import asyncio
import base64
import datetime as dt
import ipaddress
import json
import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.unit.kube.conftest import write_kubeconfig
from tests.unit.kube.fake_server import FakeServer

from vcjob.kube import credentials as module
from vcjob.kube.client import ApiClient
from vcjob.kube.credentials import Credentials, CredentialsError, load_credentials
from vcjob.kube.errors import Unauthorized, Unreachable

SERVER = "server: https://example:6443"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield


def load(path: Path, context: str | None = None) -> Credentials:
    return load_credentials(kubeconfig=path, context=context)


# Where they come from


def test_the_named_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other"))
    path = write_kubeconfig(tmp_path / "config", SERVER, "token: t", context="namespace: mine")
    found = load(path)
    assert (found.server, found.namespace) == ("https://example:6443", "mine")


def test_the_environments_files_are_merged_and_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first = tmp_path / "one" / "config"
    first.write_text("clusters: [{name: c, cluster: {server: https://first}}]\ncurrent-context: x\n")
    second = write_kubeconfig(tmp_path / "two" / "config", "server: https://second", "tokenFile: token")
    (tmp_path / "two" / "token").write_text("beside-its-file")
    missing = tmp_path / "missing"
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (missing, first, second))))
    found = load_credentials(kubeconfig=None, context=None)
    assert found.server == "https://first"
    assert asyncio.run(header(found)) == "Bearer beside-its-file"


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("account\n")
    (tmp_path / "namespace").write_text("system")
    (tmp_path / "ca.crt").write_bytes(make_certificate()[0])
    monkeypatch.setattr(module, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    found = load_credentials(kubeconfig=None, context=None)
    assert (found.server, found.namespace) == ("https://[fd00::1]:6443", "system")
    assert asyncio.run(header(found)) == "Bearer account"


def test_a_pod_without_its_service_account_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(CredentialsError, match="automountServiceAccountToken"):
        load_credentials(kubeconfig=None, context=None)


def test_the_home_file_is_the_last_resort(tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    write_kubeconfig(tmp_path / "home" / ".kube" / "config", SERVER, "token: t")
    assert load_credentials(kubeconfig=None, context=None).server == "https://example:6443"


def test_nothing_at_all_is_an_error_that_names_the_file() -> None:
    with pytest.raises(CredentialsError, match=r"\.kube/config does not exist"):
        load_credentials(kubeconfig=None, context=None)


# What is wrong with them


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ("server: example", "", r"config: clusters\[0\]\.cluster\.server must be an http or https URL"),
        (f"{SERVER}, proxy-url: 'http://p'", "", r"clusters\[0\]\.cluster\.proxy-url is set; .* not supported"),
        (f"{SERVER}, certificate-authority-data: 'x'", "", r"certificate-authority-data is not base64"),
        (f"{SERVER}, certificate-authority-data: 'aGFsbG8='", "", r"the certificate authority is not PEM"),
        (f"{SERVER}, certificate-authority: gone.crt", "", r"certificate-authority: cannot read .*gone\.crt"),
        (f"{SERVER}, insecure-skip-tls-verify: true, certificate-authority-data: 'aGFsbG8='", "", "drop one of them"),
        (SERVER, "client-certificate-data: 'aGFsbG8='", r"users\[0\]\.user\.client-key is not set"),
        (SERVER, "client-certificate-data: 'aGFsbG8=', client-key-data: 'aGFsbG8='", "do not fit"),
        (SERVER, "token: 5", r"users\[0\]\.user\.token must be a string, not int"),
        (SERVER, "username: u, password: p", r"username is set: basic authentication was removed"),
        (SERVER, "auth-provider: {name: gcp}", r"auth-provider is set: .* use an exec plugin"),
        (SERVER, "as: somebody", r"user\.as is set: impersonation"),
        (SERVER, "exec: {apiVersion: client.authentication.k8s.io/v1}", r"user\.exec\.command is not set"),
        (SERVER, "exec: {command: c, apiVersion: v0}", r"user\.exec\.apiVersion is 'v0'"),
        (
            SERVER,
            "exec: {command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}",
            "no terminal to ask on",
        ),
    ],
)
def test_an_error_names_file_and_field(tmp_path: Path, cluster: str, user: str, words: str) -> None:
    with pytest.raises(CredentialsError, match=words):
        load(write_kubeconfig(tmp_path / "config", cluster, user))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", r"config is not YAML: [^\n]* \(line 1, column 2\)$"),
        ("[1]", "config is not a kubeconfig: it holds a list"),
        ("", "current-context is not set"),
        ("current-context: x", "contexts has no 'x'; it has none"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: d}}]\nclusters: [{name: c, cluster: {}}]",
            "clusters has no 'd'; it has c",
        ),
        ("current-context: x\ncontexts: 3", "config: contexts must be a list, not int"),
        ("current-context: x\ncontexts: [{name: x, context: [1]}]", r"contexts\[0\]\.context must be a map, not list"),
        ("current-context: x\ncontexts: [{name: x, context: {}}]", r"contexts\[0\]\.context\.cluster is not set"),
    ],
)
def test_an_odd_file_is_explained(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(CredentialsError, match=words):
        load(path)


def test_an_unknown_context_is_told_with_the_known(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", SERVER, "token: t")
    with pytest.raises(CredentialsError, match="contexts has no 'y'; it has x"):
        load(path, "y")


# Tokens


async def header(credentials: Credentials) -> str | None:
    return (await credentials.headers()).get("Authorization")


async def test_a_fixed_token(tmp_path: Path) -> None:
    found = load(write_kubeconfig(tmp_path / "config", SERVER, "token: fixed"))
    assert (await header(found), await found.headers() is await found.headers()) == ("Bearer fixed", True)


async def test_no_token_no_header(tmp_path: Path) -> None:
    assert await header(load(write_kubeconfig(tmp_path / "config", SERVER, ""))) is None


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "steady", lambda: now)
    found = load(write_kubeconfig(tmp_path / "config", SERVER, "tokenFile: token"))
    (tmp_path / "token").write_text("old")
    seen = [await header(found)]
    (tmp_path / "token").write_text("new")
    now = 1059.0
    seen.append(await header(found))
    now = 1061.0
    seen.append(await header(found))
    assert seen == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_token_file_that_is_gone_for_a_while_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "steady", lambda: now)
    found = load(write_kubeconfig(tmp_path / "config", SERVER, "tokenFile: token"))
    with pytest.raises(CredentialsError, match="cannot read the token file"):
        await header(found)
    (tmp_path / "token").write_text("old")
    await header(found)
    (tmp_path / "token").unlink()
    now = 2000.0
    assert await header(found) == "Bearer old"


@pytest.mark.parametrize("content", [b"", b" \n", b"two\nlines", "t\u00f6k\u20acn".encode(), b"\xff\xfe\x00"])
async def test_a_token_file_that_holds_no_token_is_read_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "steady", lambda: now)
    found = load(write_kubeconfig(tmp_path / "config", SERVER, "tokenFile: token"))
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(CredentialsError, match=r"the token file .* (is empty|holds no token)"):
        await header(found)
    seen = []
    for now, text in ((1001.0, b"old"), (1062.0, content), (1063.5, b"new")):  # noqa: B007 -- the clock reads it
        file.write_bytes(text)
        seen.append(await header(found))
    assert seen == ["Bearer old", "Bearer old", "Bearer new"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 3000, id="nested without end"),
        pytest.param("clusters: 5\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k}}]", id="no list"),
    ],
)
def test_whatever_a_file_holds_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(CredentialsError):
        load(tmp_path / "config")


# Plugins

PLUGIN = """
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
calls = folder / "calls"
number = len(calls.read_text()) + 1 if calls.exists() else 1
calls.write_text("x" * number)
(folder / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
status = json.loads(os.environ["STATUS"])
if status.get("token"):
    status["token"] += str(number)
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


def plugin_config(folder: Path, status: dict[str, Any], *, script: str = PLUGIN, cluster: str = SERVER) -> Path:
    (folder / "plugin.py").write_text(script)
    spec = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(folder / "plugin.py")],
        "env": [{"name": "STATUS", "value": json.dumps(status)}],
        "installHint": "install it",
        "provideClusterInfo": True,
    }
    return write_kubeconfig(folder / "config", cluster, f"exec: {json.dumps(spec)}")


def in_seconds(seconds: float) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("status", "tokens"),
    [
        pytest.param({"token": "t"}, ["Bearer t1", "Bearer t1"], id="without an end it is asked once"),
        pytest.param(
            {"token": "t", "expirationTimestamp": in_seconds(3600)}, ["Bearer t1", "Bearer t1"], id="still good"
        ),
        pytest.param({"token": "t", "expirationTimestamp": in_seconds(5)}, ["Bearer t1", "Bearer t2"], id="run out"),
    ],
)
async def test_a_plugin_is_asked_when_its_credential_runs_out(
    tmp_path: Path, status: dict[str, Any], tokens: list[str]
) -> None:
    found = load(plugin_config(tmp_path, status))
    assert [await header(found), await header(found)] == tokens


async def test_many_at_once_ask_the_plugin_once(tmp_path: Path) -> None:
    found = load(plugin_config(tmp_path, {"token": "t"}))
    assert set(await asyncio.gather(*(header(found) for _ in range(20)))) == {"Bearer t1"}


async def test_a_refused_plugin_token_is_renewed_once_for_all(tmp_path: Path) -> None:
    found = load(plugin_config(tmp_path, {"token": "t"}))
    await header(found)
    await asyncio.gather(*(found.renew() for _ in range(20)))
    assert await header(found) == "Bearer t2"


async def test_a_plugin_is_told_of_the_cluster(tmp_path: Path) -> None:
    await header(load(plugin_config(tmp_path, {"token": "t"})))
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://example:6443"}}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; print('no rights', file=sys.stderr); sys.exit(3)", "exit code 3: no rights"),
        ("print('hello')", "the answer is no ExecCredential"),
        ('print(\'{"apiVersion": "v9", "status": {}}\')', "the answer is v9"),
    ],
)
async def test_a_plugin_that_fails_is_told_with_its_words(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(CredentialsError, match=words):
        await header(load(plugin_config(tmp_path, {}, script=script)))


async def test_a_plugin_without_a_credential_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="neither a token nor a client certificate"):
        await header(load(plugin_config(tmp_path, {})))


async def test_a_missing_plugin_comes_with_its_hint(tmp_path: Path) -> None:
    path = write_kubeconfig(
        tmp_path / "config",
        SERVER,
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./gone, installHint: 'get it there'}",
    )
    with pytest.raises(CredentialsError, match=r"users\[0\]\.user\.exec: cannot run .*gone: .*\nget it there"):
        await header(load(path))


async def test_a_failing_plugin_is_a_refusal_that_is_tried_again(tmp_path: Path) -> None:
    async with ApiClient(load(plugin_config(tmp_path, {})), user_agent="test") as api:
        with pytest.raises(Unauthorized):
            await api.get("/api/v1/pods")


# TLS


def make_certificate(*, name: str = "127.0.0.1", key: ec.EllipticCurvePrivateKey | None = None) -> tuple[bytes, bytes]:
    """Return a self-signed certificate for `name` and its key, both PEM."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        alternative = x509.DNSName(name)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def serving(folder: Path, *, name: str = "127.0.0.1", clients: bytes | None = None) -> tuple[ssl.SSLContext, bytes]:
    certificate, key = make_certificate(name=name)
    (folder / "server.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.decode())
    return context, certificate


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def reaches(path: Path) -> bool:
    async with ApiClient(load(path), user_agent="test") as api:
        try:
            await api.get("/api/v1/pods")
        except Unreachable:
            return False
        return True


@pytest.mark.parametrize(
    ("trust", "name", "reached"),
    [
        pytest.param("certificate-authority-data: '{ca}'", "127.0.0.1", True, id="the CA inline"),
        pytest.param("certificate-authority: ca.crt", "127.0.0.1", True, id="the CA in a file beside"),
        pytest.param("insecure-skip-tls-verify: true", "127.0.0.1", True, id="not verified"),
        pytest.param("", "127.0.0.1", False, id="an unknown CA"),
        pytest.param("certificate-authority: ca.crt", "other.example", False, id="another name"),
        pytest.param(
            "certificate-authority: ca.crt, tls-server-name: other.example", "other.example", True, id="a name given"
        ),
        pytest.param(
            "certificate-authority: ca.crt, tls-server-name: other.example", "127.0.0.1", False, id="a wrong name given"
        ),
    ],
)
async def test_the_server_is_verified(tmp_path: Path, trust: str, name: str, reached: bool) -> None:
    context, certificate = serving(tmp_path, name=name)
    (tmp_path / "ca.crt").write_bytes(certificate)
    async with FakeServer(ssl_context=context) as server:
        cluster = f"server: '{server.url}', {trust.format(ca=b64(certificate))}".rstrip(", ")
        assert await reaches(write_kubeconfig(tmp_path / "config", cluster, "token: t")) is reached


@pytest.mark.parametrize("at", ["kubeconfig", "service account"])
async def test_an_authority_that_has_come_into_its_file_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setattr(module, "_RENEW_MIN_AGE_S", 0.0)
    monkeypatch.setattr(module, "_SERVICE_ACCOUNT", tmp_path)
    context, certificate = serving(tmp_path)
    old, _ = make_certificate(name="of before")
    (tmp_path / "ca.crt").write_bytes(old)
    (tmp_path / "token").write_text("t")
    async with FakeServer(ssl_context=context) as server:
        if at == "service account":
            monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.url.rpartition(":")[2])
            found = load_credentials(kubeconfig=None, context=None)
        else:
            cluster = f"server: '{server.url}', certificate-authority: ca.crt"
            found = load(write_kubeconfig(tmp_path / "config", cluster, "token: t"))
        async with ApiClient(found, user_agent="test") as api:
            for inside in (old, b"half a certi", b"\xff", certificate):
                (tmp_path / "ca.crt").write_bytes(inside)
                with pytest.raises(Unreachable):
                    await api.get("/api/v1/pods")
            await api.get("/api/v1/pods")
            async with aclosing(api.stream("/api/v1/pods", {"watch": "1"})) as stream:
                assert await anext(stream) == []


@pytest.mark.parametrize("form", ["data", "files", "plugin", "none"])
async def test_the_client_shows_its_certificate(tmp_path: Path, form: str) -> None:
    mine, key = make_certificate(name="me")
    context, certificate = serving(tmp_path, clients=mine)
    (tmp_path / "me.crt").write_bytes(mine)
    (tmp_path / "me.key").write_bytes(key)
    async with FakeServer(ssl_context=context) as server:
        cluster = f"server: '{server.url}', certificate-authority-data: '{b64(certificate)}'"
        users = {
            "data": f"client-certificate-data: '{b64(mine)}', client-key-data: '{b64(key)}'",
            "files": "client-certificate: me.crt, client-key: me.key",
            "none": "token: t",
        }
        if form == "plugin":
            status = {"clientCertificateData": mine.decode(), "clientKeyData": key.decode()}
            path = plugin_config(tmp_path, status, cluster=cluster)
        else:
            path = write_kubeconfig(tmp_path / "config", cluster, users[form])
        assert await reaches(path) is (form != "none")
