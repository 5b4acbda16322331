"""Prints the curves of a folder of event files, as TensorBoard itself reads them: {"lr": [[1, 0.0008], ...], ...}."""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

# TensorBoard would keep a sample of long curves: 0 is all of them.
reader = EventAccumulator(sys.argv[1], size_guidance={SCALARS: 0})
reader.Reload()
tags = reader.Tags()
others = [kind for kind, found in tags.items() if kind != SCALARS and found]
if others:
    sys.exit(f"there is more than curves: {others}")
json.dump({tag: [[event.step, event.value] for event in reader.Scalars(tag)] for tag in tags[SCALARS]}, sys.stdout)
