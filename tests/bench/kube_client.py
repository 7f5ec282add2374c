"""CPU that the API client costs: per create, per watch event, per listed object, per slot of the limiter.

    python tests/bench/kube_client.py [--requests 5000] [--events 20000] [--runs 3]

The server is a second process that answers with ready bytes, so that the figures are the client's alone (user and
system time of this process). Mean and spread over the runs are printed.
"""

import argparse
import asyncio
import base64
import datetime as dt
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import msgspec
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vcjob.controller.decode_pods import decode_pod_message
from vcjob.kube.client import METADATA_ONLY, ApiClient
from vcjob.kube.credentials import load_credentials
from vcjob.kube.forms import ProtobufForm
from vcjob.kube.informer import Informer
from vcjob.kube.limiter import FairLimiter
from vcjob.kube.protobuf import PROTOBUF
from vcjob.lifecycle.pod import Pod

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.unit.controller.binary import pod_list, pod_message, watch_frame, wrap

PODS = 5000
IN_FLIGHT = 32


# A Pod of some 2.9 KB, as the API server returns it.


def pod(index: int, version: int, phase: str = "Running") -> dict[str, object]:
    env = [{"name": f"SOME_SETTING_{i}", "value": f"value-of-the-setting-{i}"} for i in range(16)]
    mounts = [{"name": f"volume-{i}", "mountPath": f"/mnt/volume-{i}", "readOnly": True} for i in range(4)]
    return {
        "metadata": {
            "name": f"train-worker-{index}",
            "namespace": "default",
            "uid": f"4f6f1f0e-0000-4000-8000-{index:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"volcano.sh/job-name": f"train-{index // 100}", "volcano.sh/task-spec": "worker"},
            "annotations": {"volcano.sh/task-index": str(index), "volcano.sh/job-version": "0"},
            "ownerReferences": [
                {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "t", "uid": "x", "controller": True}
            ],
        },
        "spec": {
            "containers": [
                {"name": "main", "image": "registry/train:1", "command": ["python", "train.py"], "env": env,
                 "volumeMounts": mounts, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
            ],
            "volumes": [{"name": f"volume-{i}", "configMap": {"name": f"settings-{i}"}} for i in range(4)],
            "restartPolicy": "Never",
            "schedulerName": "volcano",
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": name, "status": "True"} for name in ("Ready", "PodScheduled", "Initialized")],
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}],
        },
    }  # fmt: skip


# The server: one protocol, ready bytes.


class _Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop does not inherit from it
        self._buffer = b""
        self._writable = asyncio.Event()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line[15:])
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            if b"watch=1" in head:
                self._task = asyncio.ensure_future(self._stream())
            elif head.startswith(b"GET"):
                self._answer(LISTING)
            elif b"PartialObjectMetadata" in head:
                self._answer(METADATA)
            else:
                self._answer(BINARY if PROTOBUF.encode() in head else CREATED)

    def _answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
        self._transport.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _stream(self) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for frame in EVENTS:
            self._transport.write(b"%x\r\n%b\r\n" % (len(frame), frame))
            if not self._writable.is_set():
                await self._writable.wait()


CREATED = msgspec.json.encode(pod(1, 1))
METADATA = msgspec.json.encode({"metadata": pod(1, 1)["metadata"]})
BINARY = LISTING = b""
EVENTS: list[bytes] = []


def binary(index: int, version: int) -> bytes:
    """Return the message of a Pod with two kilobytes of what nobody reads: field 100."""
    return pod_message(pod(index, version)) + b"\xa2\x06\xd0\x0f" + bytes(2000)


def frame_of(number: int) -> bytes:
    event = watch_frame("MODIFIED", wrap("Pod", binary(number % PODS, 10_000 + number)))
    return len(event).to_bytes(4) + event


async def serve(folder: Path, events: int) -> None:
    global BINARY, LISTING  # noqa: PLW0603 - a script's constants that only the server process pays for
    BINARY = wrap("Pod", binary(1, 1))
    LISTING = pod_list([binary(index, index + 1) for index in range(PODS)], version=9000)
    EVENTS.extend(frame_of(number) for number in range(events))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem")
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(_Server, "127.0.0.1", 0)
    secure = await loop.create_server(_Server, "127.0.0.1", 0, ssl=context)
    print(plain.sockets[0].getsockname()[1], secure.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


def make_certificate(folder: Path) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    now = dt.datetime.now(dt.UTC)
    import ipaddress

    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "tls.pem").write_bytes(pem + private)
    return pem


def write_kubeconfig(folder: Path, server: str, ca: bytes) -> Path:
    path = folder / f"{server.partition(':')[0]}.kubeconfig"
    trust = f", certificate-authority-data: {base64.b64encode(ca).decode()}" if server.startswith("https") else ""
    path.write_text(
        f"""
clusters: [{{name: x, cluster: {{server: "{server}"{trust}}}}}]
users: [{{name: x, user: {{token: some-token}}}}]
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
current-context: x
"""
    )
    return path


# Measurements: each returns CPU microseconds per unit.


async def creates(kubeconfig: Path, number: int, accept: str | None) -> float:
    credentials = load_credentials(kubeconfig=kubeconfig, context=None)
    async with ApiClient(credentials, user_agent="bench") as api:
        body = pod(1, 1)
        left = iter(range(number))

        async def worker() -> None:
            for _ in left:
                await api.create("/api/v1/namespaces/default/pods", body, accept=accept)

        await asyncio.gather(*(api.create("/api/v1/namespaces/default/pods", body) for _ in range(IN_FLIGHT)))
        began = time.process_time()
        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        return (time.process_time() - began) / number * 1e6


async def follow(kubeconfig: Path, number: int) -> tuple[float, float]:
    credentials = load_credentials(kubeconfig=kubeconfig, context=None)
    done = asyncio.Event()
    seen = 0

    def on_change(key: tuple[str, str], old: Pod | None, new: Pod | None) -> None:
        nonlocal seen
        seen += 1
        if seen == PODS + number:
            done.set()

    async with ApiClient(credentials, user_agent="bench") as api:
        began = time.process_time()
        informer = Informer(api, "/api/v1/pods", form=ProtobufForm(decode_pod_message), on_change=on_change)
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        listed = time.process_time()
        await done.wait()
        ended = time.process_time()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return (listed - began) / PODS * 1e6, (ended - listed) / number * 1e6


async def slots(number: int) -> float:
    limiter = FairLimiter()
    began = time.process_time()
    for _ in range(number):
        async with limiter.slot(("default", "train")):
            pass
    return (time.process_time() - began) / number * 1e6


async def contended_slots(number: int) -> float:
    limiter = FairLimiter(start=32)

    async def one(key: str) -> None:
        async with limiter.slot(("default", key)):
            await asyncio.sleep(0)

    began = time.process_time()
    await asyncio.gather(*(one(f"job-{index % 100}") for index in range(number)))
    return (time.process_time() - began) / number * 1e6


def report(what: str, figures: list[float]) -> None:
    spread = 100 * statistics.pstdev(figures) / statistics.mean(figures)
    print(f"{what:<44} {statistics.mean(figures):8.1f} us   spread {spread:4.1f} %   best {min(figures):8.1f}")


def measure(what: str, runs: int, once: Callable[[], Awaitable[float]]) -> None:
    figures: list[float] = []
    for _ in range(runs):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures.append(runner.run(once()))  # type: ignore[arg-type]
    report(what, figures)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--events", type=int, default=20000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--serve", type=Path)
    args = parser.parse_args()
    if args.serve:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(args.serve, args.events))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ca = make_certificate(folder)
        command = [sys.executable, __file__, "--serve", name, "--events", str(args.events)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            plain, secure = server.stdout.readline().split()
            http = write_kubeconfig(folder, f"http://127.0.0.1:{plain}", ca)
            https = write_kubeconfig(folder, f"https://127.0.0.1:{secure}", ca)
            runs, requests, events = args.runs, args.requests, args.events
            measure("create a Pod, plain", runs, lambda: creates(http, requests, None))
            measure("create a Pod, TLS", runs, lambda: creates(https, requests, None))
            measure("create a Pod, TLS, metadata back", runs, lambda: creates(https, requests, METADATA_ONLY))
            measure("create a Pod, TLS, protobuf back", runs, lambda: creates(https, requests, PROTOBUF))
            for what, config in (("plain", http), ("TLS", https)):
                pairs = []
                for _ in range(runs):
                    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                        pairs.append(runner.run(follow(config, events)))
                report(f"list, per Pod, {what}", [pair[0] for pair in pairs])
                report(f"watch, per Pod event, {what}", [pair[1] for pair in pairs])
            measure("limiter slot, free", runs, lambda: slots(100_000))
            measure("limiter slot, contended, 100 keys", runs, lambda: contended_slots(20_000))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
