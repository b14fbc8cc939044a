# SPDX-License-Identifier: Apache-2.0
"""`torch.tpu.explain()`: why a script compiles, where fused mode runs what it has recorded, what runs on the CPU.

    with torch.tpu.explain() as report:
        train_step()
    print(report)

It listens to the whole process while the block runs, and costs nothing outside of it."""

import collections

from torch_tpu import _C

Note = collections.namedtuple("Note", "where text")


class Explanation:
    """What was noted: `cuts`, `new` and `cpu` are lists of (where, text), oldest first. Printing shows like ones once."""

    def __init__(self):
        self.cuts, self.new, self.cpu = [], [], []
        self._mark = None

    def __enter__(self):
        self._mark = _C.explain_begin()
        return self

    def __exit__(self, *exc):
        lists = {"cut": self.cuts, "new": self.new, "cpu": self.cpu}
        for kind, where, text in _C.explain_end(self._mark):
            lists[kind].append(Note(where, text))
        return False

    def __str__(self):
        parts = (
            ("New calls and traces (each may need a program)", self.new),
            ("Cuts: where recorded calls ran", self.cuts),
            ("On the CPU", self.cpu),
        )
        lines = []
        for title, notes in parts:
            if notes:
                lines.append(f"{title}: {len(notes)}")
                lines += [
                    "  " + (f"{note.where}: " if note.where else "") + note.text + (f"  ({count} times)" if count > 1 else "")
                    for note, count in collections.Counter(notes).items()
                ]
        return "\n".join(lines) or "Nothing was new, nothing was cut, nothing ran on the CPU."

    __repr__ = __str__


def explain():
    """A `with` block that notes what is new (and what had changed since the nearest known), what is cut and why, and
    what runs on the CPU, each with its Python line. Print the result after the block."""
    return Explanation()
