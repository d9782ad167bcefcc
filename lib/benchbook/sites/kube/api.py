"""One cluster through its API: apply, look, wait, run a command in a pod."""

import functools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError
from kubernetes.stream import stream
from websocket import WebSocketException

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube.placement import MANAGER

VARIABLES = ("BENCHBOOK_KUBECONFIG", "KUBECONFIG")
# The ways in which a connection to the API ends before its work is done.
LOST = (WebSocketException, urllib3.exceptions.HTTPError, OSError)
OUT, ERR = 1, 2
CALL_S = 30
BUSY = (429, 500, 502, 503, 504)
# A node takes a moment to find a container that the API already calls running.
FIND_S = 5.0
PAUSE_S = 0.2


class ApiUnavailable(SiteError):
    """The API can't be reached, or has no answer at the moment: to ask again may help."""


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command in a pod."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace").strip()


def find_kubeconfig() -> Path:
    """The kubeconfig in use: the first of the variables that is set, else the home folder's."""
    named = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), None)
    return Path(named.split(os.pathsep)[0]) if named else Path.home() / ".kube" / "config"


class KubernetesCluster:
    """A cluster that a kubeconfig and a context name. Nothing is asked of it before the first call."""

    def __init__(self, context: str | None = None, file: Path | None = None) -> None:
        self.file, self.context = file or find_kubeconfig(), context

    @functools.cached_property
    def api(self) -> client.ApiClient:
        """The client of the API; SiteError if there is no such file or context."""
        settings = client.Configuration()
        try:
            config.load_kube_config(str(self.file), self.context, settings, persist_config=False)
        except (config.ConfigException, OSError) as error:
            raise SiteError(
                f"{self.file}: no cluster is named there: {error}; set BENCHBOOK_KUBECONFIG to a "
                "kubeconfig, and site.kubernetes.context to one of its contexts"
            ) from None
        settings.retries = urllib3.Retry(total=2, backoff_factor=0.2)
        if not settings.verify_ssl:
            # The kubeconfig says so, and its owner knows.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        return client.ApiClient(settings)

    @functools.cached_property
    def _dynamic(self) -> DynamicClient:
        return DynamicClient(self.api)

    @property
    def host(self) -> str:
        return str(urlsplit(self.api.configuration.host).hostname)

    @property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.api)

    def version(self) -> str:
        return str(self.ask(client.VersionApi(self.api).get_code).git_version)

    def ask(self, call: Callable[..., Any], *words: Any, **options: Any) -> Any:
        """Call the API; SiteError in its own words if it refuses, Away if it can't be reached."""
        try:
            return call(*words, _request_timeout=CALL_S, **options)
        except ApiException as error:
            kind = ApiUnavailable if error.status in BUSY else SiteError
            why = f"{error.status} {error.reason}: {_describe_error(error)}"
            raise kind(f"the cluster refuses: {why}") from None
        except LOST as error:
            raise ApiUnavailable(f"the cluster of {self.file} can't be reached: {error}") from None

    def apply(self, manifest: Mapping[str, Any], dry_run: bool = False) -> Any:
        """Apply a manifest on the server's side, as its owner; returns the server's version of it."""
        meta, kind = manifest["metadata"], f"{manifest['apiVersion']} {manifest['kind']}"
        what = f"{manifest['kind']} {meta['name']}"
        try:
            resource = self._dynamic.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
            how: dict[str, Any] = {"name": meta["name"], "namespace": meta.get("namespace")}
            how |= {"field_manager": MANAGER, "force_conflicts": True}
            how |= {"dry_run": "All"} if dry_run else {}
            return self._dynamic.server_side_apply(resource, body=dict(manifest), **how)
        except ResourceNotFoundError:
            remedy = "install the operator that brings it"
            raise SiteError(f"{what}: the cluster knows no {kind}; {remedy}") from None
        except (DynamicApiError, ApiException) as error:
            why = f"{error.status} {_describe_error(error)}"
            raise SiteError(f"{what}: the cluster refuses it: {why}") from None
        except LOST as error:
            raise SiteError(f"the cluster of {self.file} can't be reached: {error}") from None

    def custom(self, api: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Resource of an operator's as the cluster has it now; None if there is none."""
        group, _, version = api.partition("/")
        read = client.CustomObjectsApi(self.api).list_namespaced_custom_object
        result = self.ask(read, group, version, namespace, plural, field_selector=f"metadata.name={name}")
        return next(iter(result["items"]), None)

    def run(
        self, namespace: str, pod: str, argv: Sequence[str], stdin: bytes = b"", container: str | None = None
    ) -> CommandResult:
        """Run a command in a container (None: the only one) to its end; not found, it is asked again."""
        deadline = time.monotonic() + FIND_S
        while True:
            try:
                opened = self.open(namespace, pod, argv, bool(stdin), container)
                # The command takes no more of it than its first line: not every API can end it.
                if stdin:
                    opened.write_stdin(stdin)
                # Kept by channel until the end, which the error channel's status tells.
                opened.run_forever(timeout=600)
                out, err = (opened.read_channel(channel) or b"" for channel in (OUT, ERR))
                code = opened.returncode
            except ApiException as error:
                raise SiteError(f"{pod}: {argv[0]} can't be run there: {_describe_error(error)}") from None
            except ValueError as error:
                # In place of an exit code the API says why there is none.
                if "container not found" not in str(error) or time.monotonic() > deadline:
                    raise SiteError(f"{pod}: {argv[0]} can't be run there: {error}") from None
                time.sleep(PAUSE_S)
                continue
            except (*LOST, TypeError) as error:
                raise SiteError(f"{pod}: the connection to it was lost: {error}") from None
            if code is None:
                opened.close()
                raise SiteError(f"{pod}: {' '.join(argv[:3])} did not end within 600 s")
            return CommandResult(code, out, err)

    def must(self, namespace: str, pod: str, argv: Sequence[str]) -> str:
        """Run a command in a pod and return its output; SiteError with its words if it fails."""
        done = self.run(namespace, pod, argv)
        if done.code != 0:
            statement = done.err.decode("utf-8", "replace").strip() or done.text
            raise SiteError(f"{pod}: {' '.join(argv[:3])} failed with {done.code}: {statement[-500:]}")
        return done.text

    def open(
        self, namespace: str, pod: str, argv: Sequence[str], has_stdin: bool, container: str | None = None
    ) -> Any:
        """Open a connection for the words of a command in a pod, in bytes by channel."""
        how: dict[str, Any] = {"stdin": has_stdin, "stdout": True, "stderr": True, "tty": False}
        how |= {"binary": True, "_preload_content": False}
        how |= {"container": container} if container is not None else {}
        connect = self.core.connect_get_namespaced_pod_exec
        return stream(connect, pod, namespace, command=list(argv), **how)

    def raw(self, path: str) -> str | None:
        """The API's answer at a path, as text; None if it has or shows nothing."""
        try:
            answer = self.api.call_api(
                *self.api.param_serialize("GET", path, auth_settings=["BearerToken"], header_params={}),
                _request_timeout=CALL_S,
            )
            answer.read()
            data: bytes = answer.data or b""
            return data.decode("utf-8", "replace") if answer.status == 200 else None
        except (ApiException, *LOST):
            return None


def wait_for(what: Callable[[], Any], seconds: float, pause_s: float = 0.2) -> Any:
    """Ask until something true comes back, and return it; the last answer after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (result := what()) and time.monotonic() < deadline:
        time.sleep(pause_s)
    return result


def _describe_error(error: Any) -> str:
    body = error.body.decode() if isinstance(error.body, bytes) else str(error.body or error.reason)
    try:
        return str(json.loads(body).get("message", body))
    except (ValueError, AttributeError):
        return body[:500]
