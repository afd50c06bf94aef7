# SPDX-License-Identifier: Apache-2.0
"""check_kafka.py SERVERS TOPIC COUNT: reads COUNT records with kafka-python and reads each as a CloudEvent with the SDK
of the CloudEvents project. Prints one JSON line for each: the event's attributes and the size of its data. Ends with 1
if a record is not where Java's default partitioner would put its key."""
import json
import sys

from cloudevents.kafka import KafkaMessage, from_binary, from_structured
from kafka import KafkaConsumer, TopicPartition
from kafka.partitioner.default import murmur2


def main(servers: str, topic: str, count: int) -> int:
    consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False, auto_offset_reset="earliest",
                             isolation_level="read_committed", consumer_timeout_ms=30000)
    partitions = sorted(consumer.partitions_for_topic(topic))
    consumer.assign([TopicPartition(topic, one) for one in partitions])
    wrong = 0
    for _, record in zip(range(count), consumer):
        message = KafkaMessage(headers=dict(record.headers), key=record.key.decode(), value=record.value)
        structured = message.headers["content-type"].startswith(b"application/cloudevents")
        event = (from_structured(message) if structured
                 else from_binary(message, data_unmarshaller=lambda data: data))
        out = {name: event[name] for name in event.get_attributes()}
        data = event.get_data()
        out["data"] = data if isinstance(data, dict) else len(data)
        print(json.dumps(out, default=str), flush=True)
        if (murmur2(record.key) & 0x7FFFFFFF) % len(partitions) != record.partition:
            print(f"{record.key} is in partition {record.partition}", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
