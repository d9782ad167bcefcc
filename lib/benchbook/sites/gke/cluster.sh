#!/bin/sh
# A cluster on Google Kubernetes Engine for one study, and its end.
#
#   benchbook cluster STUDY        shows this file with the study's values
#   benchbook cluster STUDY up     makes what is missing: each command is shown before it runs
#   benchbook cluster STUDY down   removes cluster, nodes and disks once the cluster's name is typed
#
# `up` keeps the file in the study's lab as gke.sh, so that `make down` finds what costs money; `sh gke.sh up` and
# `sh gke.sh down` are the same by hand. Only a cluster with the label of this lab is used or removed. No price is
# known here, and nothing of this has been run against Google's cloud by its authors.
set -eu

# The study's own: site.kubernetes.gke. A pool has name, machine, system, nodes in each zone, zones, the kubelets'
# CPU manager, local SSDs of each node, and their interface.
@STUDY@

export KUBECONFIG="$folder/kubeconfig"
# Nodes that repair or upgrade themselves in the middle of a run would be another arm.
steady='--no-enable-autoupgrade --no-enable-autorepair'

die() { echo "$*" >&2; exit 1; }
show() { echo "+ $*"; "$@"; }

up() {
  missing=
  for program in gcloud gke-gcloud-auth-plugin kubectl ${operator:+helm}; do
    command -v "$program" >/dev/null || missing="$missing $program"
  done
  [ -z "$missing" ] || die "not found on this machine:$missing; nothing was made"
  there=$(gcloud container clusters describe "$cluster" $at '--format=value(status)' 2>/dev/null || true)
  if [ -n "$there" ]; then
    echo "cluster $cluster: there already, $there"
    must_be_ours
  else
    # Its first pool is Kubernetes' own: a small machine, so that nothing of it meets a benchmark.
    show gcloud container clusters create "$cluster" $at --quiet --enable-ip-alias "--node-locations=$zones" $version \
      "--labels=benchbook-lab=$id" --release-channel=None --num-nodes=1 --machine-type=e2-standard-4 $steady
  fi
  pools make_pool
  show gcloud container clusters get-credentials "$cluster" $at
  [ -z "$operator" ] || install_operator
  printf '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%s", "labels": %s}}' "$namespace" "$labels" |
    kubectl apply -f -
  [ -z "$by_gke$by_hand$open_files" ] || node_settings | on_nodes node-settings "$(pools name_of)"
  pools mount_disks
  echo "export BENCHBOOK_KUBECONFIG=$KUBECONFIG"
}

down() {
  gcloud container clusters describe "$cluster" $at '--format=value(status)' >/dev/null 2>&1 || return 0
  must_be_ours
  printf 'Remove the cluster %s with all its nodes and disks? Type its name: ' "$cluster"
  read -r name || true
  [ "${name:-}" = "$cluster" ] || die "cluster $cluster: kept, its name was not typed; it costs money"
  show gcloud container clusters delete "$cluster" $at --quiet
}

must_be_ours() {
  owner=$(gcloud container clusters describe "$cluster" $at '--format=value(resourceLabels.benchbook-lab)')
  [ "$owner" = "$id" ] || die "cluster $cluster: there already, and not of this lab; set another \
site.kubernetes.gke.name, or leave gke out and name it in the kubeconfig"
}

make_pool() {
  there=$(gcloud container node-pools describe "$1" --cluster "$cluster" $at '--format=value(status)' 2>/dev/null || true)
  [ -z "$there" ] || { echo "pool $1: there already, $there"; return; }
  file=$folder/nodes-$6.yaml disks='' configuration=''
  {
    [ "$6" = none ] || printf 'kubeletConfig:\n  cpuManagerPolicy: %s\n' "$6"
    [ -z "$by_gke" ] || printf 'linuxConfig:\n  sysctl:\n'
    for pair in $by_gke; do printf "    %s: '%s'\n" "${pair%%=*}" "${pair#*=}"; done
  } >"$file"
  [ ! -s "$file" ] || configuration=--system-config-from-file=$file
  case $7,$8 in 0,*) ;; *,nvme) disks=--local-nvme-ssd-block=count=$7 ;; *) disks=--local-ssd-count=$7 ;; esac
  show gcloud container node-pools create "$1" --cluster "$cluster" $at --quiet "--machine-type=$2" "--image-type=$3" \
    "--num-nodes=$4" "--node-locations=$5" "--node-labels=benchbook-pool=$1" "--node-taints=benchbook=$1:NoSchedule" \
    $disks $configuration $steady
}

name_of() { printf '%s ' "$1"; }

# The version of TiDB Operator that its maker names for this TiDB; another one is refused.
install_operator() {
  types=https://raw.githubusercontent.com/pingcap/tidb-operator/v$operator/manifests/crd.yaml
  chart=$(helm list --namespace tidb-admin --filter '^tidb-operator$' --output json |
    sed -n 's/.*"chart": *"tidb-operator-v\([^"]*\)".*/\1/p')
  [ "${chart:-$operator}" = "$operator" ] || die "TiDB Operator $chart is in the cluster and $operator was asked for; \
remove it with \`helm uninstall tidb-operator --namespace tidb-admin\`"
  show kubectl apply --server-side --force-conflicts --filename "$types"
  show helm upgrade --install tidb-operator tidb-operator --repo https://charts.pingcap.org/ --version "v$operator" \
    --namespace tidb-admin --create-namespace --set scheduler.create=false --wait
}

# What GKE's configuration of nodes does not take is set by hand; all of it is read back on every node. Containers get
# containerd's limit of open files at their start.
node_settings() {
  echo 'set -eu'
  for pair in $by_hand; do echo "sysctl -q -w $pair"; done
  for pair in $by_hand $by_gke; do
    printf '[ "$(sysctl -n %s)" = %s ] || { echo "%s is $(sysctl -n %s), not %s" >&2; exit 1; }\n' \
      "${pair%%=*}" "${pair#*=}" "${pair%%=*}" "${pair%%=*}" "${pair#*=}"
  done
  [ -z "$open_files" ] || sed "s/MOST/$open_files/g" <<'END'
[ "$(sysctl -n fs.nr_open)" -ge MOST ] || sysctl -q -w fs.nr_open=MOST
folder=/etc/systemd/system/containerd.service.d
if ! grep -qs LimitNOFILE=MOST $folder/benchbook.conf; then
  mkdir -p $folder
  printf '[Service]\nLimitNOFILE=MOST\n' >$folder/benchbook.conf
  systemctl daemon-reload
  systemctl restart containerd
fi
limit=$(systemctl show -p LimitNOFILE --value containerd)
[ "$limit" = MOST ] || { echo "open files of containers: $limit, not MOST" >&2; exit 1; }
END
}

# Local SSDs of a pool: formatted, mounted with the study's options, and each a volume of the class benchbook-local.
mount_disks() {
  [ "$7" != 0 ] || return 0
  # Names as Google documents them. GKE has formatted and mounted SCSI disks already, without our options.
  case $8 in nvme) devices='google-local-ssd-block[0-9]*' ;; *) devices='google-local-ssd-[0-9]*' ;; esac
  sed "s/DEVICES/$devices/g; s/COUNT/$7/g; s/OPTIONS/$ssd_options/g" <<'END' | on_nodes "disks-$1" "$1"
set -eu
number=0
for device in /dev/disk/by-id/DEVICES; do
  case $device in *-part*) continue ;; esac
  [ -b "$device" ] || continue
  at=/mnt/disks/benchbook-$number
  number=$((number + 1))
  mkdir -p "$at"
  mountpoint -q "$at" && continue
  while mounted=$(findmnt -n -o TARGET --first-only "$(readlink -f "$device")"); do umount "$mounted"; done
  blkid "$device" >/dev/null || mkfs.ext4 -q -m 0 "$device"
  mount -t ext4 -o OPTIONS "$device" "$at"
done
[ "$number" -eq COUNT ] || { echo "$number local SSDs, COUNT were asked for; look at /dev/disk/by-id" >&2; exit 1; }
END
  for node in $(kubectl get nodes -l "benchbook-pool=$1" -o 'jsonpath={.items[*].metadata.name}'); do
    disk=0
    while [ $disk -lt "$7" ]; do
      kubectl apply -f - <<END
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: benchbook-local, labels: $labels}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $namespace-$node-$disk, labels: $labels}
spec:
  capacity: {storage: ${size_gib}Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Delete
  storageClassName: benchbook-local
  local: {path: /mnt/disks/benchbook-$disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node]}]}]}}
END
      disk=$((disk + 1))
    done
  done
}

# A DaemonSet NAME that runs the script of its input as root on every node of POOLS, and is ready where that ended well.
on_nodes() {
  script=$(sed 's/^/            /')
  kubectl apply -f - <<END
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: $1, namespace: $namespace, labels: $labels}
spec:
  selector: {matchLabels: {benchbook/part: $1}}
  template:
    metadata: {labels: {benchbook/part: $1}}
    spec:
      hostPID: true
      automountServiceAccountToken: false
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
        {matchExpressions: [{key: benchbook-pool, operator: In, values: [$(echo $2 | sed 's/ /, /g')]}]}]}}}
      tolerations: [{key: benchbook, operator: Exists}]
      containers:
      - name: node
        image: debian:bookworm-slim
        securityContext: {privileged: true}
        readinessProbe: {exec: {command: [test, -e, /tmp/done]}, periodSeconds: 2}
        command:
          - sh
          - -c
          - nsenter -t 1 -m -n -u -i -- sh -c "\$0" && touch /tmp/done && exec sleep infinity
          - |
$script
END
  kubectl rollout status "daemonset/$1" -n "$namespace" --timeout=600s || {
    kubectl logs -n "$namespace" -l "benchbook/part=$1" --tail=5 --prefix >&2
    die "$1: not done on every node"
  }
}

case ${1:-} in up | down) "$1" ;; *) die "usage: sh gke.sh up|down" ;; esac
