// SPDX-License-Identifier: Apache-2.0

// order_consumer counts orders in Redis and follows what driftd reports about that Redis: other passwords, another
// endpoint.
//
//	make                                        # generates driftdv1 from the protobuf file and builds
//	build/order_consumer nats://127.0.0.1:4222 orders-cache checkpoint.json
//
// It needs NATS and the protobuf file, nothing else of driftd. Where its Redis is stands in $BACKEND_CONFIG_PATH
// (docs/consume.md). The four rules of a consumer are marked below: catch up, duplicates, order, acknowledge last.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/proto"

	"order_consumer/driftdv1"
)

const (
	slot    = "state_store"
	durable = "order-consumer-go"
)

// order is the place of an event: a later incarnation of the agent's store comes after every sequence of an earlier one.
type order struct{ Incarnation, Sequence uint64 }

func (o order) after(p order) bool {
	return o.Incarnation > p.Incarnation || (o.Incarnation == p.Incarnation && o.Sequence > p.Sequence)
}

// checkpoint is what was applied: for each resource the last order. Its file is replaced as a whole.
type checkpoint struct {
	path    string
	applied map[string]order
}

func openCheckpoint(path string) (*checkpoint, error) {
	c := &checkpoint{path, map[string]order{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c.applied)
	}
	return c, err
}

func (c *checkpoint) save(key string, o order) error {
	c.applied[key] = o
	text, err := json.Marshal(c.applied)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(file.Name(), c.path)
}

// resolve returns the value of a reference: env:NAME or file:/path. The third form, k8s:…, needs the Kubernetes API.
func resolve(reference string) (string, error) {
	scheme, rest, _ := strings.Cut(reference, ":")
	if value, set := os.LookupEnv(rest); scheme == "env" && set {
		return value, nil
	}
	if scheme == "file" {
		text, err := os.ReadFile(rest)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	return "", errors.New("a credential is neither an env: variable that is set nor a file:")
}

// connect returns a Redis client with the endpoint and the credentials of this moment.
func connect(ctx context.Context) (*redis.Client, error) {
	text, err := os.ReadFile(os.Getenv("BACKEND_CONFIG_PATH"))
	if err != nil {
		return nil, err
	}
	var backends map[string]struct {
		Endpoint    string
		Credentials map[string]string
	}
	if err := json.Unmarshal(text, &backends); err != nil {
		return nil, err
	}
	options := &redis.Options{Addr: backends[slot].Endpoint}
	for name, to := range map[string]*string{"username": &options.Username, "password": &options.Password} {
		reference, given := backends[slot].Credentials[name]
		if !given {
			continue
		}
		if *to, err = resolve(reference); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	client := redis.NewClient(options)
	return client, client.Ping(ctx).Err()
}

// subjectOf returns backend.<name>.>; bytes that a subject must not have are written as =XX.
func subjectOf(backend string) string {
	name := ""
	for _, b := range []byte(backend) {
		if b == '-' || b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' {
			name += string(rune(b))
		} else {
			name += fmt.Sprintf("=%02X", b)
		}
	}
	return "backend." + name + ".>"
}

// subscribe: 1. Catch up. A durable consumer, whose position the server keeps while this program is away.
func subscribe(stream nats.JetStreamContext, backend string, since time.Time) (*nats.Subscription, error) {
	for {
		_, err := stream.ConsumerInfo("DRIFT", durable)
		if errors.Is(err, nats.ErrConsumerNotFound) {
			_, err = stream.AddConsumer("DRIFT", &nats.ConsumerConfig{
				Durable: durable, FilterSubject: subjectOf(backend), AckPolicy: nats.AckExplicitPolicy,
				DeliverPolicy: nats.DeliverByStartTimePolicy, OptStartTime: &since, MaxDeliver: -1})
		}
		if err == nil {
			return stream.PullSubscribe(subjectOf(backend), durable, nats.Bind("DRIFT", durable))
		}
		if !errors.Is(err, nats.ErrStreamNotFound) {
			return nil, err
		}
		time.Sleep(250 * time.Millisecond) // driftd makes the stream with its first event
	}
}

type consumer struct {
	client     atomic.Pointer[redis.Client]
	checkpoint *checkpoint
}

func (c *consumer) handle(ctx context.Context, message *nats.Msg) error {
	var event driftdv1.BackendChangeEvent
	if err := proto.Unmarshal(message.Data, &event); err != nil {
		log.Printf("%s: not an event, skipped: %v", message.Subject, err)
		return message.Term()
	}
	key, now := message.Header.Get("ce-partitionkey"), order{event.Incarnation, event.Sequence}
	// 2. Duplicates and 3. order: what is not after the last one of its resource was applied before, or is older.
	if now.after(c.checkpoint.applied[key]) {
		change := strings.TrimPrefix(event.ChangeType.String(), "BACKEND_CHANGE_TYPE_")
		fmt.Printf("Received backend change event: %s for backend %s\n", change, event.BackendName)
		if change == "UPDATED" || change == "CREDENTIAL_ROTATED" || change == "ENDPOINT_CHANGED" {
			client, err := connect(ctx)
			if err != nil {
				return err // not acknowledged: it comes again
			}
			former := c.client.Swap(client)
			time.AfterFunc(5*time.Second, func() { former.Close() }) // orders that run may end
		}
		if err := c.checkpoint.save(key, now); err != nil {
			return err
		}
	}
	return message.Ack() // 4. Last: a kill before this line makes the event come again
}

func (c *consumer) countOrders(ctx context.Context) {
	for range time.Tick(20 * time.Millisecond) { // an order comes now and then
		if err := c.client.Load().Incr(ctx, "orders").Err(); err != nil {
			log.Printf("order not counted: %v", err)
		}
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatalf("usage: %s NATS-URL BACKEND CHECKPOINT-FILE", os.Args[0])
	}
	ctx, since := context.Background(), time.Now().Add(-5*time.Minute) // clocks differ
	memory, err := openCheckpoint(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	c := &consumer{checkpoint: memory}
	client, err := connect(ctx) // bind, then subscribe, then process
	if err != nil {
		log.Fatal(err)
	}
	c.client.Store(client)
	server, err := nats.Connect(os.Args[1], nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	stream, err := server.JetStream()
	if err != nil {
		log.Fatal(err)
	}
	go c.countOrders(ctx)
	subscription, err := subscribe(stream, os.Args[2], since)
	if err != nil {
		log.Fatal(err)
	}
	for {
		messages, err := subscription.Fetch(16, nats.MaxWait(5*time.Second))
		if err != nil && !errors.Is(err, nats.ErrTimeout) {
			log.Print(err)
			time.Sleep(250 * time.Millisecond)
		}
		for _, message := range messages {
			if err := c.handle(ctx, message); err != nil {
				log.Printf("event %s: %v; it comes again", message.Header.Get("ce-id"), err)
				message.NakWithDelay(time.Second)
			}
		}
	}
}
