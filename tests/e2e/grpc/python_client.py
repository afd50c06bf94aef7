#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that has no generated code: it learns the services by reflection, as grpcurl does.

python_client.py SOCKET TOPICS: prints one JSON object: the listed services, the health, the RFC's field numbers, and what
a stream brought until it had that many topics and was opened a second time with its token.
"""
import json
import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def main():
    socket, topics = sys.argv[1], int(sys.argv[2])
    channel = grpc.insecure_channel("unix:" + socket)
    database = ProtoReflectionDescriptorDatabase(channel)
    pool = descriptor_pool.DescriptorPool(database)
    service = pool.FindServiceByName("driftd.v1.BackendEvents")
    subscribe = service.FindMethodByName("Subscribe")
    request = message_factory.GetMessageClass(subscribe.input_type)
    response = message_factory.GetMessageClass(subscribe.output_type)
    call = channel.unary_stream("/driftd.v1.BackendEvents/Subscribe", request_serializer=request.SerializeToString,
                                response_deserializer=response.FromString)
    health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    seen, token = set(), ""
    for start in ({"start": 2}, None):
        stream = call(request(resume_token=token) if start is None else request(**start), timeout=60)
        first = next(stream)
        assert first.WhichOneof("message") == "position", first
        for message in stream:
            token = message.resume_token
            if message.WhichOneof("message") == "event" and "kafka_topic." in message.event.resource_id:
                seen.add(message.event.resource_id)
            if len(seen) >= (topics // 2 if start else topics):
                break
        stream.cancel()
    subscription = pool.FindMessageTypeByName("driftd.v1.BackendEventSubscription")
    print(json.dumps({
        "services": sorted(database.get_services()),
        "serving": health.status == health_pb2.HealthCheckResponse.SERVING,
        "subscription": {field.name: field.number for field in subscription.fields},
        "topics": len(seen),
    }))


main()
