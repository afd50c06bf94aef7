# SPDX-License-Identifier: Apache-2.0
"""Counts orders in Redis and follows what driftd reports about that Redis: other passwords, another endpoint.

    pip install nats-py==2.7.2 redis==5.0.8 protobuf==4.25.3
    protoc --proto_path=PROTO --python_out=. driftd/v1/event.proto      # PROTO: the folder with driftd/v1/event.proto
    python order_consumer.py nats://127.0.0.1:4222 orders-cache checkpoint.json

It needs NATS and the protobuf file, nothing else of driftd. Where its Redis is stands in $BACKEND_CONFIG_PATH
(docs/consume.md). The four rules of a consumer are marked below: catch up, duplicates, order, acknowledge last.
"""
import asyncio
import json
import os
import pathlib
import sys
import time

import nats
import redis.asyncio as redis
from google.protobuf.message import DecodeError
from nats.errors import TimeoutError as NothingToFetch
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from driftd.v1 import event_pb2

SLOT = "state_store"
ACTED_ON = ("UPDATED", "CREDENTIAL_ROTATED", "ENDPOINT_CHANGED")


class Checkpoint:
    """What was applied: for each resource the last (incarnation, sequence). A file that is replaced as a whole."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.applied = json.loads(self.path.read_text()) if self.path.exists() else {}

    def is_new(self, key, order):
        return order > tuple(self.applied.get(key, (0, 0)))

    def save(self, key, order):
        self.applied[key] = order
        fresh = self.path.with_suffix(".new")
        with open(fresh, "w") as file:
            json.dump(self.applied, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self.path)


def resolve(reference):
    """The value of a reference: `env:NAME` or `file:/path`. The third form, `k8s:…`, needs the Kubernetes API."""
    scheme, _, rest = reference.partition(":")
    if scheme == "env" and rest in os.environ:
        return os.environ[rest]
    if scheme == "file":
        return pathlib.Path(rest).read_text().removesuffix("\n")
    raise ValueError("a credential is neither an `env:` variable that is set nor a `file:`")


async def connect():
    """A Redis client with the endpoint and the credentials of this moment."""
    entry = json.loads(pathlib.Path(os.environ["BACKEND_CONFIG_PATH"]).read_text())[SLOT]
    host, _, port = entry["endpoint"].rpartition(":")
    credentials = {name: resolve(reference) for name, reference in entry.get("credentials", {}).items()}
    client = redis.Redis(host=host, port=int(port), socket_timeout=5, **credentials)
    await client.ping()
    return client


def subject_of(backend):
    """`backend.<name>.>`; characters that a subject must not have are written as =XX."""
    return "backend." + "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "".join(
        f"={b:02X}" for b in c.encode()) for c in backend) + ".>"


async def subscribe(server, backend, since):
    """1. Catch up: a durable consumer, whose position the server keeps while this program is away."""
    stream = server.jetstream()
    durable = "order-consumer-python"
    while True:
        try:
            await stream.consumer_info("DRIFT", durable)
            break
        except NotFoundError:
            try:
                await stream.add_consumer("DRIFT", ConsumerConfig(
                    durable_name=durable, filter_subject=subject_of(backend), ack_policy=AckPolicy.EXPLICIT,
                    deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=since, max_deliver=-1))
            except NotFoundError:  # driftd makes the stream with its first event
                await asyncio.sleep(0.25)
    return await stream.pull_subscribe_bind(durable, stream="DRIFT")


class Consumer:
    def __init__(self, client, checkpoint):
        self.client, self.checkpoint = client, checkpoint

    async def handle(self, message):
        event = event_pb2.BackendChangeEvent.FromString(message.data)
        key, order = message.headers["ce-partitionkey"], (event.incarnation, event.sequence)
        # 2. Duplicates and 3. order: what is not above the last one of its resource was applied before, or is older.
        if self.checkpoint.is_new(key, order):
            change = event_pb2.BackendChangeType.Name(event.change_type).removeprefix("BACKEND_CHANGE_TYPE_")
            print(f"Received backend change event: {change} for backend {event.backend_name}", flush=True)
            if change in ACTED_ON:
                former, self.client = self.client, await connect()
                await former.aclose()
            self.checkpoint.save(key, order)
        await message.ack()  # 4. Last: a kill before this line makes the event come again

    async def follow(self, subscription):
        while True:
            try:
                (message,) = await subscription.fetch(1, timeout=5)  # of a larger batch it would wait for the rest
            except NothingToFetch:
                continue
            try:
                await self.handle(message)
            except DecodeError:
                print(f"{message.subject}: not an event, skipped", file=sys.stderr, flush=True)
                await message.term()
            except (redis.RedisError, OSError, ValueError) as error:
                print(f"{message.subject}: {error}; it comes again", file=sys.stderr, flush=True)
                await message.nak(delay=1)

    async def count_orders(self):
        while True:
            client = self.client
            try:
                await client.incr("orders")
            except redis.ConnectionError as error:
                if client is self.client:  # otherwise it was replaced under this order
                    print(f"order not counted: {error}", file=sys.stderr, flush=True)
            await asyncio.sleep(0.02)  # an order comes now and then


async def main(url, backend, checkpoint):
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 300))  # clocks differ
    consumer = Consumer(await connect(), Checkpoint(checkpoint))  # bind, then subscribe, then process
    server = await nats.connect(url, max_reconnect_attempts=-1)
    orders = asyncio.create_task(consumer.count_orders())
    subscription = await subscribe(server, backend, since)
    await asyncio.gather(orders, consumer.follow(subscription))


if len(sys.argv) != 4:
    sys.exit(f"usage: {sys.argv[0]} NATS-URL BACKEND CHECKPOINT-FILE")
asyncio.run(main(*sys.argv[1:]))
