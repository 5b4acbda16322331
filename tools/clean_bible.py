#!/usr/bin/env python3
"""Turns the output of Debian's `bible` command into plain verses, one a line: drops banner, prompts and numbers."""
import re
import sys

asked = False  # before its first prompt the command shows Genesis 1:1 unasked
for line in sys.stdin:
    asked = asked or line.startswith("bible(")
    verse = re.match(r"\s+\d+ (.+)$", line)
    if asked and verse:
        print(verse.group(1))
