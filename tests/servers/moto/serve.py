#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve.py PORT FILE strict|open: moto's S3 and IAM on loopback. Bucket `states`, with versions; user `writer` may do everything,
user `stranger` nothing; FILE gets their keys as JSON once all is there. From then on, if strict, signatures and rights are checked."""
import json
import os
import sys
import threading

import boto3
from moto import settings
from moto.server import ThreadedMotoServer

PORT, FILE = int(sys.argv[1]), sys.argv[2]
REGION = "eu-central-1"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}

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
if sys.argv[3] == "strict":
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
with open(FILE + ".new", "w") as out:
    json.dump(keys, out)
os.rename(FILE + ".new", FILE)
threading.Event().wait()
