"""What a folder of the file system must be, whatever was killed: every acknowledged operation done, one that was not
acknowledged done or not, and nothing else.

A file is (tag, length, generations): tag is the number of the put that made it, length that of its records (0:
variable), generations has a set for each record: the numbers of the writes of which it may be.
A world is {path: file}. An operation is a tuple: ("put", path, tag, length, records), ("append", path, first, count,
number), ("overwrite", path, first, count, number), ("rename", from, to), ("remove", path), ("copy", from, to).
"""

from pif_system import check


def apply(world, operation):
    """The world after it."""
    kind, path, *rest = operation
    after = dict(world)
    if kind == "put":
        tag, length, records = rest
        after[path] = (tag, length, (frozenset([tag]),) * records)
    elif kind == "append":
        _, count, number = rest
        tag, length, generations = world[path]
        after[path] = (tag, length, generations + (frozenset([number]),) * count)
    elif kind == "overwrite":
        after[path] = overwritten(world[path], *rest, keep=False)
    elif kind == "rename":
        after[rest[0]] = after.pop(path)
    elif kind == "copy":
        after[rest[0]] = world[path]
    elif kind == "remove":
        del after[path]
    else:
        raise ValueError(kind)
    return after


def overwritten(file, first, count, number, keep):
    tag, length, generations = file
    changed = tuple((old if keep else frozenset()) | {number} for old in generations[first : first + count])
    return tag, length, generations[:first] + changed + generations[first + count :]


class Oracle:
    """may_be_late: an append that failed may be done after everybody has seen that it was not: LFS 0 had told its
    deputy of it, and learns from that one later that it was published."""

    def __init__(self, may_be_late=False):
        self.worlds = [{}]  # any of these
        self.may_be_late = may_be_late
        self.late = []  # (tag, first record, count, number) of appends that nobody has seen yet

    def latest(self):
        """The world if everything so far was done."""
        return self.worlds[-1]

    def acknowledged(self, operation):
        self.worlds = [apply(world, operation) for world in self.worlds]

    def unknown(self, operation):
        """Not acknowledged. An overwrite is done record by record, everything else is all or nothing."""
        if operation[0] == "append" and self.may_be_late:
            path, *rest = operation[1:]
            self.late.append((self.latest()[path][0], *rest))
        if operation[0] == "overwrite":
            path, *rest = operation[1:]
            self.worlds = [{**world, path: overwritten(world[path], *rest, keep=True)} for world in self.worlds]
        else:
            self.worlds = self.worlds + [apply(world, operation) for world in self.worlds]

    def observe(self, where, seen):
        """seen: {path: (length, runs)} with runs (tag, first record, generation, count). It must be one of the worlds;
        from now on it is the only one. A record whose overwrite may yet be done (it is still on its way) stays open."""
        reasons = []
        for world in self.worlds + [after for world in self.worlds for after in self.with_late(world)]:
            reason = difference(world, seen)
            if reason is None:
                self.worlds = [{path: narrowed(file, seen[path][1]) for path, file in world.items()}]
                return
            reasons.append(reason)
        check(False, f"{where}: " + "; nor the other way: ".join(reasons))

    def with_late(self, world):
        """The worlds with any of the late appends."""
        found = [world]
        for path, file in world.items():
            for tag, first, count, number in self.late:
                if file[0] == tag and len(file[2]) == first:
                    operation = ("append", path, first, count, number)
                    found += [apply(one, operation) for one in found if one[path] == file]
        return found[1:]

    def is_late(self, path, first, at):
        """Whether an append for record `first` may have come to lie at `at`: behind one that was late."""
        file = self.latest().get(path)
        return file is not None and any(one[0] == file[0] and one[1] + one[2] == at > first for one in self.late)

    def forget(self, tag):
        """Of the file of this put nothing is known any more."""
        self.worlds = [{path: file for path, file in world.items() if file[0] != tag} for world in self.worlds]


def expand(runs):
    for tag, first, generation, count in runs:
        for record in range(first, first + count):
            yield tag, record, generation


def difference(world, seen):
    """Why this is not that world, or None."""
    for path in sorted(world.keys() | seen.keys()):
        if path not in seen:
            return f"{path} is not there"
        if path not in world:
            return f"{path} is there: {describe(seen[path])}"
        reason = file_difference(world[path], seen[path])
        if reason:
            return f"{path} {reason}"
    return None


def file_difference(file, seen):
    tag, length, generations = file
    seen_length, runs = seen
    if length != seen_length:
        return f"has records of {seen_length} bytes instead of {length}"
    records = list(expand(runs))
    if len(records) != len(generations):
        return f"has {len(records)} records instead of {len(generations)}: {describe(seen)}"
    for number, (seen_tag, record, generation) in enumerate(records):
        if (seen_tag, record) != (tag, number):
            return f"record {number} is record {record} of file {seen_tag}, not of {tag}"
        if generation not in generations[number]:
            return f"record {number} is of write {generation} instead of {sorted(generations[number])}"
    return None


def narrowed(file, runs):
    """Generations never go back; what was not overwritten yet may still be."""
    tag, length, generations = file
    seen = [generation for _, _, generation in expand(runs)]
    return tag, length, tuple(frozenset(g for g in may if g >= is_now) for may, is_now in zip(generations, seen))


def describe(seen):
    return f"records of {seen[0]} bytes " + " ".join(":".join(map(str, run)) for run in seen[1])


class LogOracle:
    """One file to which several clients append at once: every acknowledged append is there once and whole, others once
    and whole or not at all."""

    def __init__(self, tag, may_be_late=False):
        self.tag = tag
        self.may_be_late = may_be_late
        self.must = {}  # number of the append -> records
        self.may = {}
        self.had_doubts = False  # when it was last observed

    def acknowledged(self, number, count):
        self.must[number] = count

    def unknown(self, number, count):
        self.may[number] = count

    def records(self):
        return sum(self.must.values())

    def observe(self, where, runs):
        found = {}
        for tag, first, generation, count in runs:
            expected = self.must.get(generation, self.may.get(generation))
            check(tag == self.tag and expected is not None, f"{where}: records of nobody: {tag}:{first}:{generation}")
            check(generation not in found, f"{where}: append {generation} is there twice, or in pieces")
            check(first == 0 and count == expected, f"{where}: append {generation} has {count} records, not {expected}")
            found[generation] = count
        self.had_doubts = bool(self.may)
        lost = sorted(self.must.keys() - found.keys())
        check(not lost, f"{where}: acknowledged appends are lost: {lost}")
        self.must = found
        self.may = {number: n for number, n in self.may.items() if self.may_be_late and number not in found}
