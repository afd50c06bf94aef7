# SPDX-License-Identifier: Apache-2.0
"""parse_messages.py FILE: prints each line of FILE as JSON, as syslog-rfc5424-parser (which is not ours) reads it."""
import json
import sys

from syslog_rfc5424_parser import SyslogMessage

with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        print(json.dumps(SyslogMessage.parse(line.rstrip("\n")).as_dict()))
