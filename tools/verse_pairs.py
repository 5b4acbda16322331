#!/usr/bin/env python3
"""Makes conversations of verses, one a line: what stands before a colon is given, what stands behind it is learned."""
import json
import sys

for verse in sys.stdin:
    given, colon, learned = verse.strip().partition(": ")
    if colon and len(verse) < 200:
        print(json.dumps({"prompt": given + colon, "completion": learned + "\n"}))
