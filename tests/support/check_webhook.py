# SPDX-License-Identifier: Apache-2.0
"""Checks recorded webhook requests with independent libraries: the signature with `standardwebhooks`, the event with
`cloudevents`.

usage: check_webhook.py REQUESTS.jsonl SECRET
"""
import base64
import json
import sys

from cloudevents.http import from_http
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

requests = [json.loads(line) for line in open(sys.argv[1])]
requests = [r for r in requests if r.get("body")]
verifier = Webhook(sys.argv[2])
assert requests, "no request was recorded"
for request in requests:
    body = base64.b64decode(request["body"])
    headers = request["headers"]
    verifier.verify(body, headers)
    event = from_http(headers, body)
    assert event["id"] == headers["webhook-id"], "the event's id is not the webhook-id of the request"
    assert event["type"].startswith("io.driftd.backend."), event["type"]
    assert event["source"].startswith("//"), event["source"]
    assert event.data["event_id"] == event["id"], "the data holds another event than its envelope"
    try:
        verifier.verify(body + b" ", headers)
    except WebhookVerificationError:
        continue
    raise SystemExit("a tampered body was accepted, so this check proves nothing")
print(f"{len(requests)} requests verified")
