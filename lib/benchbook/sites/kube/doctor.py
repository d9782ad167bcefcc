"""Check if a cluster can be reached, and name the arms that its lacks rule out. Looks only."""

from benchbook.core.util.errors import SiteError
from benchbook.sites.kube import facts
from benchbook.sites.kube.api import VARIABLES, KubernetesCluster, find_kubeconfig
from benchbook.sites.machine.capabilities import Ability, judge_optional

# What a study does there, as `kubectl auth can-i` takes it.
RIGHTS = (
    "create namespaces", "create statefulsets.apps", "create secrets", "create services",
    "create pods/exec", "patch pods/ephemeralcontainers", "list nodes",
)  # fmt: skip


def examine() -> list[Ability]:
    """Abilities of the cluster that the kubeconfig names; no other site needs any of them."""
    file = find_kubeconfig()
    if not file.is_file():
        detail = f"no kubeconfig at {file}; only for studies with `site: {{kind: kubernetes}}`"
        return [judge_optional("kubernetes", False, detail, f"name one in {VARIABLES[0]}")]
    cluster = KubernetesCluster()
    try:
        version = cluster.version()
    except SiteError as error:
        remedy = f"look at {file}, or name another in {VARIABLES[0]}"
        return [judge_optional("kubernetes", False, str(error), remedy)]
    abilities = [judge_optional("kubernetes", True, f"{version}, by {file}", "")]
    lacking = [right.removesuffix(".apps") for right in RIGHTS if not _is_allowed(cluster, *right.split())]
    remedy = "ask who runs the cluster for these rights"
    detail = ", ".join(lacking) or "all that studies need"
    abilities.append(judge_optional("cluster rights", not lacking, detail, remedy))
    has = facts.has_balancers(cluster)
    remedy = "use a cluster of a cloud, or install MetalLB; without it `load_balancer` arms are skipped"
    detail = {True: "given", False: "nothing gives them", None: "nodes may not be looked at"}[has]
    abilities.append(judge_optional("load balancers", has is not False, detail, remedy))
    has_operator = cluster.raw("/apis/pingcap.com/v1alpha1") is not None
    remedy = "install the one that `make plan` names; without it `site.kubernetes.tidb` can't be made"
    version = facts.operator_version(cluster) or "its version is not shown"
    detail = f"TidbCluster is known, {version}" if has_operator else "TidbCluster is not known"
    abilities.append(judge_optional("tidb operator", has_operator, detail, remedy))
    return abilities


def _is_allowed(cluster: KubernetesCluster, verb: str, what: str) -> bool:
    from kubernetes import client

    name, _, group = what.partition(".")
    resource, _, sub = name.partition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": sub or None}
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(**asked))
    review, api = client.V1SelfSubjectAccessReview(spec=spec), client.AuthorizationV1Api(cluster.api)
    try:
        return bool(cluster.ask(api.create_self_subject_access_review, review).status.allowed)
    except SiteError:
        return False
