package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/seat-tenure/tenure/bench/measure"
)

// nameEtcd is the contender's name in figures.
const nameEtcd = "etcd-txn"

// etcdReady bounds the start.
const etcdReady = 30 * time.Second

// etcdTTL is the lease's, in seconds, as the seats' is.
const etcdTTL = 45

// startEtcd starts one etcd server in this process, on TCP, with fsync or with
// the unsafe setting that leaves it out, and a client to it.
func startEtcd(ctx context.Context, fsync bool) (client *clientv3.Client, stop func(), err error) {
	dir, err := os.MkdirTemp("", "tenure-bench-etcd-")
	if err != nil {
		return nil, nil, err
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.UnsafeNoFsync = dir, !fsync
	cfg.LogLevel, cfg.LogOutputs = "fatal", []string{"/dev/null"}
	var urls [2]url.URL
	for i := range urls {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		urls[i] = url.URL{Scheme: "http", Host: l.Addr().String()}
		if err := l.Close(); err != nil {
			return nil, nil, err
		}
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = urls[:1], urls[:1]
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = urls[1:], urls[1:]
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, nil, err
	}
	end := func() { server.Close(); _ = os.RemoveAll(dir) }
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(etcdReady):
		end()
		return nil, nil, fmt.Errorf("etcd did not start in %v", etcdReady)
	}
	client, err = clientv3.New(clientv3.Config{Endpoints: []string{strings.TrimPrefix(urls[0].String(), "http://")}, DialTimeout: etcdReady})
	if err != nil {
		end()
		return nil, nil, err
	}
	return client, func() { _ = client.Close(); end() }, nil
}

// transaction is a lease as etcd's documentation has it: a key that is created if
// it does not exist, in one transaction, and hangs on the node's session lease.
// The key's revision is the fencing token. Every claimant's session is made once.
func transaction(ctx context.Context, client *clientv3.Client) (measure.Contender, error) {
	session, err := client.Grant(ctx, etcdTTL)
	if err != nil {
		return measure.Contender{}, err
	}
	if _, err := client.KeepAlive(ctx, session.ID); err != nil {
		return measure.Contender{}, err
	}
	const record = `{"owner":"node-0:5ea7be4c","preferred":"node-0","protocol":4}`
	var n atomic.Int64
	return measure.Contender{Name: nameEtcd, Do: func(ctx context.Context, _ int) (int, error) {
		key := fmt.Sprintf("seat/e-%d", n.Add(1))
		answer, err := client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, record, clientv3.WithLease(session.ID))).Commit()
		if err == nil && !answer.Succeeded {
			err = fmt.Errorf("%s is held", key)
		}
		return 1, err
	}}, nil
}
