#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve.py PORT FILE strict|open: moto's S3 and IAM on loopback. Bucket `states`, with versions; user `writer` may do everything,
user `stranger` nothing (from SIGUSR1 on it may read, until SIGUSR2); FILE gets their keys as JSON once all is there. From then on, if strict, signatures and rights are checked."""
import json
import os
import signal
import sys

import boto3
from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam import iam_backends
from moto.server import ThreadedMotoServer

PORT, FILE = int(sys.argv[1]), sys.argv[2]
REGION = "eu-central-1"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}

SIGNALS = {signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # in every thread, so that the loop at the end gets them

ThreadedMotoServer(ip_address="127.0.0.1", port=PORT, verbose=False).start()
common = {"endpoint_url": f"http://127.0.0.1:{PORT}", "region_name": REGION, "aws_access_key_id": "setup", "aws_secret_access_key": "setup"}
s3, iam = boto3.client("s3", **common), boto3.client("iam", **common)
s3.create_bucket(Bucket="states", CreateBucketConfiguration={"LocationConstraint": REGION})
s3.put_bucket_versioning(Bucket="states", VersioningConfiguration={"Status": "Enabled"})
keys = {}
for name in ("writer", "stranger"):
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    keys[name] = {"access": key["AccessKeyId"], "secret": key["SecretAccessKey"]}
iam.put_user_policy(UserName="writer", PolicyName="all", PolicyDocument=json.dumps(EVERYTHING))
READ = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}]}
backend = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
if sys.argv[3] == "strict":
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
with open(FILE + ".new", "w") as out:
    json.dump(keys, out)
os.rename(FILE + ".new", FILE)
while True:
    if signal.sigwait(SIGNALS) == signal.SIGUSR1:
        backend.put_user_policy("stranger", "read", json.dumps(READ))
    else:
        backend.delete_user_policy("stranger", "read")
