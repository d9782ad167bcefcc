#!/bin/bash
# A Kubernetes cluster of this machine alone, for the studies `cluster-*`: a real etcd, API server, controller manager,
# scheduler, kubelet and kube-proxy on containerd. Any other cluster will do as well. Debian or Ubuntu, root, Go 1.22 or
# newer, and 11 GB of disk for `build`, of which 1 GB stays.
#
#   one-machine.sh build              install packages, compile Kubernetes and its kubectl (10 minutes, once)
#   one-machine.sh up                 start the cluster; prints the path of its kubeconfig
#   one-machine.sh node NAME          one node more, on the same cores, with the images that node1 has
#   one-machine.sh lose NAME          take such a node's power; `node NAME` switches it on again
#   one-machine.sh image NAME FOLDER  make an image of a folder (rootfs.sh) and load it, as localhost/NAME
#   one-machine.sh name NAME OTHER    give the image localhost/NAME another name, such as docker.io/pingcap/pd:v5.0.0
#   one-machine.sh status             nodes and pods
#   one-machine.sh down               stop all that it started; remove its interfaces, state, images, keys and plugins;
#                                     put the kernel's settings and control groups back. What `build` made stays in bin
#
# KUBE_DIR is its folder, /var/lib/benchbook-kube otherwise. The API listens on loopback; its token is in the kubeconfig.
# Pods reach it by its Service. The kubelet listens on the machine's own address, and answers nobody but this API server;
# CoreDNS listens there too, and answers nobody but pods and this machine.
set -euo pipefail
V=1.31.4; DNS=1.11.3
D=${KUBE_DIR:-/var/lib/benchbook-kube}; B=$D/bin; export KUBECONFIG=$D/kubeconfig PATH=$B:$PATH
SOCK=$D/containerd/containerd.sock
mkdir -p "$D"/{bin,etcd,certs,logs,kubelet,containerd,run}
# What kubelet, kube-proxy and containerd change of the kernel for everybody.
SETTINGS="vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys
  kernel.keys.root_maxbytes net.ipv4.ip_forward net.ipv4.conf.all.forwarding net.ipv4.conf.all.route_localnet
  net.netfilter.nf_conntrack_tcp_timeout_established net.netfilter.nf_conntrack_tcp_timeout_close_wait"
runs() { kill -0 "$(cat "$D/run/$1.pid" 2>/dev/null)" 2>/dev/null; }
start() { # NAME COMMAND...; one that runs already stays
  local n=$1; shift; ! runs "$n" || return 0
  setsid "$@" >"$D/logs/$n.log" 2>&1 & echo $! >"$D/run/$n.pid"
}
ready() { # NAME COMMAND...; waits a minute for what NAME gives, and says where to look
  local n=$1 _; shift
  for _ in $(seq 60); do "$@" >/dev/null 2>&1 && return; runs "$n" || break; sleep 1; done
  echo "$n: not ready; see $D/logs/$n.log, and take the rest down with: $0 down" >&2; return 1
}
is_ready() { kubectl get node "$1" | grep -q ' Ready'; }
storage() { buildah --root "$D/buildah" --runroot "$D/run/buildah" "$@"; }

build() {
  local free; free=$(df -Pk "$D" | awk 'NR==2{print int($4/1048576)}')
  [ "$free" -ge 11 ] || { echo "$D: $free GB are free, and building Kubernetes takes 11; set KUBE_DIR" >&2; exit 1; }
  apt-get update -qq
  apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends etcd-server etcd-client containerd runc \
    containernetworking-plugins buildah debootstrap conntrack iptables iproute2 ethtool socat \
    gcc libc6-dev openssl $(command -v go >/dev/null || echo golang-go) >/dev/null
  case $(go env GOVERSION) in go1.[0-9].*|go1.1[0-9]*|go1.20*|go1.21*)
    echo "$(go env GOVERSION): Kubernetes $V needs Go 1.22 or newer; put one into the PATH" >&2; exit 1 ;;
  esac
  export GOCACHE=$D/go-build
  local src=$D/src; mkdir -p "$src"; cd "$src"
  printf 'module kubebin\ngo 1.22.0\n' >go.mod
  local mod; mod=$(go mod download -json k8s.io/kubernetes@v$V | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  { echo "module kubebin"; grep -v '^module ' "$mod/go.mod" |
      sed -E "s#=> ./staging/src/(k8s.io/[a-z-]+)#=> \1 v0.${V#1.}#"; echo "require k8s.io/kubernetes v$V"; } >go.mod
  cp -f "$mod/go.sum" go.sum; chmod u+w go.sum
  for c in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
    go build -mod=mod -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=v$V -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=31" \
      -o "$B/$c" "k8s.io/kubernetes/cmd/$c"; echo "built $c"
  done
  cd "$(go mod download -json github.com/coredns/coredns@v$DNS | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')"
  go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$B/coredns" . && echo "built coredns"
  rm -rf "$D/go-build" "$src"
  command -v kubectl | grep -qvxF "$B/kubectl" || echo "kubectl is $B/kubectl"
}

up() {
  local c
  for c in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl coredns; do
    [ -x "$B/$c" ] || { echo "$B/$c is not there; first: $0 build" >&2; exit 1; }
  done
  # Debian's etcd-server starts an etcd of its own, whose objects would be this cluster's and outlive it.
  if ! runs etcd && (: </dev/tcp/127.0.0.1/2379) 2>/dev/null; then
    echo "another etcd listens on port 2379; stop it: systemctl disable --now etcd" >&2; exit 1
  fi
  if [ ! -f "$D/before" ]; then
    modprobe -q nf_conntrack || true
    for k in $SETTINGS; do echo "$k=$(sysctl -n "$k")"; done >"$D/before"
    find /sys/fs/cgroup -type d | sort >"$D/cgroups"
  fi
  cd "$D"; local ip; ip=$(ip -4 -o addr show scope global | awk 'NR==1{split($4,a,"/");print a[1]}')
  [ -f sa.key ] || { openssl genrsa -out sa.key 2048 2>/dev/null; openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null; }
  # The kubelet knows its API server by this certificate.
  [ -f certs/to-kubelet.crt ] || (umask 077
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=one-machine \
      -keyout certs/to-kubelet.key -out certs/to-kubelet.crt 2>/dev/null)
  local token; token=$(cat token 2>/dev/null || openssl rand -hex 16 | tee token)
  (umask 077; echo "$token,admin,admin,\"system:masters\"" >tokens.csv
  cat >kubeconfig <<K
apiVersion: v1
kind: Config
clusters: [{name: rig, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: rig, context: {cluster: rig, user: admin}}]
current-context: rig
K
)
  start etcd etcd --data-dir "$D/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
  sleep 2
  start apiserver "$B/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --bind-address=127.0.0.1 --secure-port=6443 \
    --advertise-address="$ip" --endpoint-reconciler-type=none --cert-dir="$D/certs" --service-cluster-ip-range=10.96.0.0/16 \
    --service-account-key-file=sa.pub --service-account-signing-key-file=sa.key --service-account-issuer=https://kubernetes.default.svc \
    --kubelet-client-certificate=certs/to-kubelet.crt --kubelet-client-key=certs/to-kubelet.key \
    --token-auth-file=tokens.csv --authorization-mode=RBAC --allow-privileged=true --kubelet-preferred-address-types=InternalIP
  ready apiserver kubectl get --raw /readyz
  start controller-manager "$B/kube-controller-manager" --kubeconfig="$KUBECONFIG" --service-account-private-key-file=sa.key \
    --leader-elect=false --use-service-account-credentials=true --allocate-node-cidrs=true --cluster-cidr=10.88.0.0/16 \
    --root-ca-file="$D/certs/apiserver.crt"
  start scheduler "$B/kube-scheduler" --kubeconfig="$KUBECONFIG" --leader-elect=false
  local f # What it makes outside of its folder, for `down`.
  for f in /etc/cni /etc/cni/net.d /opt/cni /opt/cni/bin; do [ -d "$f" ] || { mkdir "$f"; echo "$f" >>made; }; done
  for f in /usr/lib/cni/*; do
    [ -e "/opt/cni/bin/${f##*/}" ] || { cp "$f" /opt/cni/bin; echo "/opt/cni/bin/${f##*/}" >>made; }
  done
  echo /etc/cni/net.d/10-rig.conflist >>made
  cat >/etc/cni/net.d/10-rig.conflist <<K
{"cniVersion":"0.4.0","name":"rig","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.88.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}},{"type":"portmap","capabilities":{"portMappings":true}}]}
K
  cat >containerd.toml <<K
version = 2
root = "$D/containerd/root"
state = "$D/containerd/state"
[grpc]
address = "$SOCK"
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "localhost/pause:1"
K
  start containerd-node1 containerd --config containerd.toml; sleep 3
  ctr -a "$SOCK" -n k8s.io image ls -q 2>/dev/null | grep -q localhost/pause:1 || pause
  cat >kubelet.yaml <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: "$D/certs/to-kubelet.crt"}}
authorization: {mode: AlwaysAllow}
address: 127.0.0.1
cgroupDriver: cgroupfs
failSwapOn: false
containerRuntimeEndpoint: unix://$SOCK
enforceNodeAllocatable: []
evictionHard: {}
localStorageCapacityIsolation: false
clusterDNS: ["$ip"]
clusterDomain: cluster.local
K
  sed -i "s/^address: .*/address: $ip/" kubelet.yaml
  cat >Corefile <<K
. {
  bind $ip
  acl {
    allow net 10.88.0.0/16 $ip/32
    block
  }
  kubernetes cluster.local {
    kubeconfig $KUBECONFIG
  }
  forward . /etc/resolv.conf
}
K
  start coredns "$B/coredns" -conf "$D/Corefile"
  start kubelet-node1 "$B/kubelet" --config=kubelet.yaml --kubeconfig="$KUBECONFIG" --hostname-override=node1 --root-dir="$D/kubelet" --cert-dir="$D/certs" --node-ip="$ip"
  ready kubelet-node1 is_ready node1
  start kube-proxy "$B/kube-proxy" --kubeconfig="$KUBECONFIG" --proxy-mode=iptables --hostname-override=node1 --cluster-cidr=10.88.0.0/16 --conntrack-max-per-core=0
  # Kubernetes' own rules let nothing to loopback that was not sent on there, as this is.
  iptables -t nat -A PREROUTING -i cni0 -d 10.96.0.1 -p tcp --dport 443 -m comment --comment CNI-API -j DNAT --to-destination 127.0.0.1:6443
  # What is sent to a Service before kube-proxy knows it is refused: out there something else might answer.
  for chain in FORWARD OUTPUT; do iptables -I $chain -d 10.96.0.0/16 -m comment --comment CNI-SERVICES -j REJECT; done
  echo "$KUBECONFIG"
}

# Each node has a containerd of its own, since a kubelet ends every container that it does not know; so too with
# control groups and logs.
node() {
  local n=$1 d=$D/nodes/$1 known; mkdir -p "$d"; known=$(find "$D/nodes" -mindepth 1 -maxdepth 1 | wc -l)
  [ -f "$d/port" ] || echo $((10240 + 100 * known)) >"$d/port"
  local port; port=$(cat "$d/port")
  sed "s#$D/containerd#$d/containerd#" "$D/containerd.toml" >"$d/containerd.toml"
  for c in /sys/fs/cgroup/*/; do
    if [ -e "${c}cgroup.procs" ] && mkdir -p "$c$n" && [ -e "$c$n/cpuset.cpus" ]; then
      for k in cpus mems; do cat "${c}cpuset.$k" >"$c$n/cpuset.$k"; done
    fi
  done
  start "containerd-$n" containerd --config "$d/containerd.toml"; sleep 3
  for i in $(ctr -a "$SOCK" -n k8s.io image ls -q | grep -v '^sha256:\|@sha256:'); do
    ctr -a "$d/containerd/containerd.sock" -n k8s.io image ls -q | grep -qxF "$i" && continue
    ctr -a "$SOCK" -n k8s.io image export "$D/image.tar" "$i"
    ctr -a "$d/containerd/containerd.sock" -n k8s.io image import "$D/image.tar" >/dev/null
  done
  { sed "s#$SOCK#$d/containerd/containerd.sock#" "$D/kubelet.yaml"; echo "port: $port"
    echo "healthzPort: $((port + 1))"; echo "cgroupRoot: /$n"; echo "podLogsDir: $d/logs"; } >"$d/kubelet.yaml"
  start "kubelet-$n" "$B/kubelet" --config="$d/kubelet.yaml" --kubeconfig="$KUBECONFIG" --hostname-override="$n" \
    --root-dir="$d/kubelet" --cert-dir="$d/certs" --node-ip="$(sed -n 's/^address: //p' "$D/kubelet.yaml")"
  ready "kubelet-$n" is_ready "$n"
}

lose() {
  local c
  for c in kubelet containerd; do kill -9 "$(cat "$D/run/$c-$1.pid")" || true; rm -f "$D/run/$c-$1.pid"; done
  find /sys/fs/cgroup -path "/sys/fs/cgroup/*$1/*" -name cgroup.procs -exec cat {} + | sort -u | xargs -r kill -9 2>/dev/null || true
  ps -eo pid=,args= | awk -v d="$D/nodes/$1/" '/containerd-shim/ && index($0,d){print $1}' | xargs -r kill -9 || true
}

image() { # NAME ROOTFS_DIR
  local name=$1 root=$2 c; export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
  c=$(storage from scratch); storage copy -q "$c" "$root" / >/dev/null
  [ "$name" = pause:1 ] && storage config --entrypoint '["/pause"]' "$c"
  storage commit -q "$c" "localhost/$name" >/dev/null; rm -f "$D/image.tar"
  storage push -q "localhost/$name" "oci-archive:$D/image.tar:localhost/$name"
  for s in "$SOCK" "$D"/nodes/*/containerd/containerd.sock; do
    [ ! -S "$s" ] || ctr -a "$s" -n k8s.io image import "$D/image.tar"
  done
  storage rm "$c" >/dev/null
}

pause() {
  mkdir -p "$D/pause"; cat >"$D/pause.c" <<'K'
#include <signal.h>
#include <unistd.h>
#include <sys/wait.h>
static void quit(int s) { (void)s; _exit(0); }
static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0); }
int main(void) { signal(SIGINT, quit); signal(SIGTERM, quit); signal(SIGCHLD, reap); for (;;) pause(); }
K
  gcc -static -O2 -o "$D/pause/pause" "$D/pause.c"; image pause:1 "$D/pause"
}

down() {
  kubectl delete all --all --all-namespaces --grace-period=1 --timeout=30s >/dev/null 2>&1 || true
  for n in kube-proxy coredns $(cd "$D/run" && ls | sed -n 's/\.pid$//; /^kubelet/p; /^containerd/H; ${x; p}') \
    scheduler controller-manager apiserver etcd; do
    [ -f "$D/run/$n.pid" ] && kill "$(cat "$D/run/$n.pid")" 2>/dev/null || true; rm -f "$D/run/$n.pid"
  done
  sleep 1
  ps -eo pid=,args= | awk -v d="$D/" '/containerd-shim/ && index($0,d){print $1}' | xargs -r kill 2>/dev/null || true
  grep -oE " $D/[^ ]+" /proc/mounts | sort -r | xargs -r -n1 umount -l 2>/dev/null || true
  ip link del cni0 2>/dev/null || true
  iptables-save | grep -vE 'KUBE-|CNI-' | iptables-restore || true
  # Control groups that came meanwhile: those of its nodes, pods and containers, the innermost first.
  if [ -f "$D/cgroups" ]; then
    find /sys/fs/cgroup -type d | sort | comm -13 "$D/cgroups" - |
      grep -E "/(kubepods|k8s\.io|$(ls "$D/nodes" 2>/dev/null | paste -sd'|'))(/|$)" | sort -r |
      xargs -r rmdir 2>/dev/null || true
  fi
  if [ -f "$D/before" ]; then xargs -r sysctl -q -w <"$D/before" || true; fi
  # The folders, named before what is in them, go last and only where they are empty.
  if [ -f "$D/made" ]; then sort -ru "$D/made" | xargs -r rm -df 2>/dev/null || true; fi
  rm -rf /var/lib/cni/networks/rig /var/lib/cni/results/rig-* "$D"/{etcd,kubelet,containerd,nodes,buildah,run,logs,pause}
  rm -rf "$D"/{certs,sa.key,sa.pub,token,tokens.csv,kubeconfig,Corefile,containerd.toml,kubelet.yaml,pause.c,image.tar,before,cgroups,made}
}

case ${1:-} in
  build|up|down|pause) "$1" ;;
  node|lose) "$1" "$2" ;;
  image) image "$2" "$3" ;;
  name) ctr -a "$SOCK" -n k8s.io image tag --force "localhost/$2" "$3" ;;
  status) kubectl get nodes,pods -A -o wide ;;
  *) sed -n 2,16p "$0"; exit 2 ;;
esac
