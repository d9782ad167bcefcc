// A store of unistore, at the one address it is given.
//
// unistore's own program listens on every address of the machine, whatever it is told to be called, and does
// not say what it was set to. This one makes the same server from the same packages, listens where it is told,
// stops as cleanly, and answers `/config` on its status port with the settings in force. Its data may be put
// back in another place.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/ngaut/unistore/config"
	_ "github.com/ngaut/unistore/metrics"
	"github.com/ngaut/unistore/pd"
	"github.com/ngaut/unistore/server"
	"github.com/pingcap/kvproto/pkg/deadlock"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/pingcap/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// As unistore's own program has them.
	window    = 1 << 30
	mostBytes = 10 * 1024 * 1024
)

func must(err error) {
	if err != nil {
		log.S().Fatal(err)
	}
}

// placed is PD for a store whose data may have been put back in another place.
//
// It names a store to others only once that store has told PD that it is at one of their addresses: until then
// PD knows where the data lay before, and another cluster with stores of the same numbers may listen there.
// Whoever gives each cluster a network or a PD of its own, as pods and hosts do, names no addresses.
// It sends the first heartbeat of a store as soon as it is started again: unistore sends its first after 10 s,
// and until then PD takes the store for lost and moves no leader to it.
type placed struct {
	pd.Client
	peers map[string]bool
	path  string
	isNew bool
}

func (client *placed) GetStore(ctx context.Context, id uint64) (*metapb.Store, error) {
	store, err := client.Client.GetStore(ctx, id)
	if err == nil && len(client.peers) > 0 && !client.peers[store.GetAddress()] {
		return nil, fmt.Errorf("store %d is not in its place yet, PD knows it at %s", id, store.GetAddress())
	}
	return store, err
}

// AllocID is asked first by a store that has no number yet.
func (client *placed) AllocID(ctx context.Context) (uint64, error) {
	client.isNew = true
	return client.Client.AllocID(ctx)
}

func (client *placed) PutStore(ctx context.Context, store *metapb.Store) error {
	if err := client.Client.PutStore(ctx, store); err != nil || client.isNew {
		return err
	}
	disk := syscall.Statfs_t{}
	if err := syscall.Statfs(client.path, &disk); err != nil {
		return err
	}
	now, size := uint64(time.Now().Unix()), uint64(disk.Bsize)
	return client.StoreHeartbeat(ctx, &pdpb.StoreStats{
		StoreId:   store.Id,
		Capacity:  disk.Blocks * size,
		Available: disk.Bavail * size,
		StartTime: uint32(now),
		Interval:  &pdpb.TimeInterval{StartTimestamp: now - 1, EndTimestamp: now},
	})
}

func main() {
	path := flag.String("config", "", "settings file; server.store-addr is what others are told to connect to")
	listen := flag.String("listen", "", "address to listen on")
	peers := flag.String("peers", "", "addresses of all stores of this cluster, with commas; without it, PD's word is taken")
	flag.Parse()
	conf := config.DefaultConf
	told, err := toml.DecodeFile(*path, &conf)
	must(err)
	if unknown := told.Undecoded(); len(unknown) > 0 {
		log.S().Fatalf("unknown setting %v", unknown)
	}
	runtime.GOMAXPROCS(conf.Server.MaxProcs)
	logger, properties, err := log.InitLogger(&log.Config{Level: conf.Server.LogLevel})
	must(err)
	log.ReplaceGlobals(logger, properties)

	client, err := pd.NewClient(strings.Split(conf.Server.PDAddr, ","), "")
	must(err)
	known := map[string]bool{}
	for _, address := range strings.FieldsFunc(*peers, func(one rune) bool { return one == ',' }) {
		known[address] = true
	}
	store, err := server.New(&conf, &placed{Client: client, peers: known, path: conf.Engine.DBPath})
	must(err)
	serving := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 2 * time.Second, PermitWithoutStream: true,
		}),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.MaxRecvMsgSize(mostBytes),
	)
	tikvpb.RegisterTikvServer(serving, store)
	deadlock.RegisterDeadlockServer(serving, store)
	socket, err := net.Listen("tcp", *listen)
	must(err)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-ended
		serving.Stop()
	}()
	http.HandleFunc("/config", func(answer http.ResponseWriter, _ *http.Request) {
		must(json.NewEncoder(answer).Encode(conf))
	})
	go func() { must(http.ListenAndServe(conf.Server.StatusAddr, nil)) }()
	must(serving.Serve(socket))
	store.Stop()
}
