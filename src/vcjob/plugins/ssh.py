"""ssh: Pods of a Job log in to each other without a password. Pure but for the generation of keys.

The Job gets a Secret with one key pair and an ssh config that knows every host. The keys live as long as the Job; the
config follows its tasks. Making an RSA key takes some 0.1 s, so it happens in `generate`, off the event loop.
"""

from base64 import b64encode
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from vcjob.api.job import Task

from .base import Flag, Manifest, Note, ObjectRef, Plugin, PodDraft, Reason, WantedObject
from .flags import PORT_MAX
from .hosts import OBJECT_DATA_MAX, host_label, subdomain, volume_name

__all__ = ("Ssh",)

ROOT_PATH: Final = "/root/.ssh"
SUB_PATH: Final = ".ssh"
KEY_BITS: Final = 2048
FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
# ssh refuses a private key of its own user that others may read. Root owns the files of a Secret, so root needs 0600,
# and any other user can read them only when all may.
MODE_ROOT: Final = 0o600
MODE_OTHERS: Final = 0o644
KEYS_RESERVE: Final = 16 * 1024  # bytes of the Secret that stay free for a generated key pair
CONFIG_HEAD: Final = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"


class Ssh(Plugin):
    """A key pair and an ssh config for every container, in one Secret."""

    name = "ssh"
    flags = (
        Flag(
            name="ssh-key-file-path",
            kind=str,
            default=ROOT_PATH,
            help="Directory in the containers where the keys and the config are mounted.",
        ),
        Flag(
            name="ssh-private-key",
            kind=str,
            default="",
            help="Your own private key, whole, instead of a generated one.",
        ),
        Flag(
            name="ssh-public-key",
            kind=str,
            default="",
            help="The public line that belongs to `ssh-private-key`.",
        ),
        Flag(
            name="ssh-port",
            kind=int,
            default=22,
            minimum=1,
            maximum=PORT_MAX,
            help="Port that the config gives for every host.",
        ),
    )

    def notes(self) -> tuple[Note, ...]:
        found = list(super().notes())
        private, public = self.args["ssh-private-key"], self.args["ssh-public-key"]
        if public and not private:
            text = "ssh-public-key is ignored without ssh-private-key, a pair is generated; give both"
            found.append(Note(reason=Reason.ARGUMENT, message=f"ssh: {text}"))
        if private and not public:
            text = "ssh-public-key is missing; it is derived from a private key without a passphrase, otherwise empty"
            found.append(Note(reason=Reason.ARGUMENT, message=f"ssh: {text}"))
        if self._path != self.args["ssh-key-file-path"].rstrip("/"):
            text = f"ssh-key-file-path must be an absolute path without a colon; {ROOT_PATH} is used"
            found.append(Note(reason=Reason.ARGUMENT, message=f"ssh: {text}"))
        if self._config != self._listed_config:
            text = "the config would not fit into a Secret host by host; it has one pattern for each task instead"
            found.append(Note(reason=Reason.LIMIT, message=f"ssh: {text}"))
        return tuple(found)

    def on_job_add(self) -> tuple[WantedObject, ...]:
        private, public = self.args["ssh-private-key"], self.args["ssh-public-key"]
        data = {"config": self._config}
        if private and public:
            data |= _own_keys(private, public)
        secret = WantedObject(
            ref=ObjectRef(api_version="v1", kind="Secret", name=self._secret),
            manifest={"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": _encoded(data)},
            follow=(("data", "config"),),
            required=tuple(("data", file) for file in FILES),  # without one of them no Pod would start
            generate=None if private and public else self._generate,
        )
        return (secret,)

    def on_pod_create(self, pod: PodDraft) -> None:
        pod.attach(self._volume, mount=self._mount, plugin=self.name)

    def _generate(self) -> Manifest:
        private = self.args["ssh-private-key"]
        return {"data": _encoded(_own_keys(private, _public_line(private)) if private else _new_keys())}

    @property
    def _secret(self) -> str:
        return f"{self.job.name}-ssh"

    @cached_property
    def _path(self) -> str:
        path: str = self.args["ssh-key-file-path"].rstrip("/")
        return path if path.startswith("/") and ":" not in path else ROOT_PATH

    @cached_property
    def _volume(self) -> Manifest:
        return {
            "name": volume_name(self.job, "ssh"),
            "secret": {
                "secretName": self._secret,
                "items": [{"key": file, "path": f"{SUB_PATH}/{file}"} for file in FILES],
                "defaultMode": MODE_ROOT if self._path == ROOT_PATH else MODE_OTHERS,
            },
        }

    @cached_property
    def _mount(self) -> Manifest:
        return {"name": volume_name(self.job, "ssh"), "mountPath": self._path, "subPath": SUB_PATH}

    @cached_property
    def _listed_config(self) -> str:
        blocks = [CONFIG_HEAD]
        for task in self.job.spec.tasks:
            count = min(task.replicas, 1) if task.pod_spec.get("hostname") else task.replicas
            below = self._below_host(task)
            for index in range(count):
                label = host_label(self.job, task=task, index=index)
                blocks.append(f"Host {label}\n  HostName {label}.{below}")
        return "".join(blocks)

    @cached_property
    def _config(self) -> str:
        own = len(self.args["ssh-private-key"]) + 2 * len(self.args["ssh-public-key"])
        if len(self._listed_config) + own + KEYS_RESERVE <= OBJECT_DATA_MAX:
            return self._listed_config
        blocks = [CONFIG_HEAD]
        for task in self.job.spec.tasks:
            label = task.pod_spec.get("hostname") or f"{self.job.name}-{task.name}-*"
            # %h stands for the name as it was typed; one with its domain is complete already.
            blocks.append(f"Host {label} !*.*\n  HostName %h.{self._below_host(task)}")
        return "".join(blocks)

    def _below_host(self, task: Task) -> str:
        return f"{subdomain(self.job, task=task)}\n  Port {self.args['ssh-port']}\n"


def _own_keys(private: str, public: str) -> dict[str, str]:
    return {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}


def _new_keys() -> dict[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() + "\n"
    return _own_keys(pem, public)


def _public_line(private: str) -> str:
    """Return the public line of a private key in PEM or OpenSSH form; empty when it cannot be read."""
    load = load_ssh_private_key if "BEGIN OPENSSH PRIVATE KEY" in private else load_pem_private_key
    try:
        public = load(private.encode(), password=None).public_key()
        return public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() + "\n"
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return ""


def _encoded(data: Mapping[str, str]) -> dict[str, str]:
    return {key: b64encode(value.encode()).decode() for key, value in data.items()}
