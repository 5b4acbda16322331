#!/usr/bin/env python3
"""Turns the output of Debian's `bible` command into plain verses, one a line: drops banner, prompts and numbers."""
import re
import sys

for line in sys.stdin:
    verse = re.match(r"\s+\d+ (.+)$", line)
    if verse:
        print(verse.group(1))
