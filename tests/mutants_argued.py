"""Mutants that no test can kill, and why: by file and name, as tests/mutants.py prints it."""

from typing import Final

COST: Final = "only the cost differs"
WIDER: Final = "windows may be wider, and are never narrower: more is searched, and the same is found"
ARGUED: Final[dict[tuple[str, str], str]] = {
    (
        "checkers/transactions/list_rows.py",
        "np.cumsum(is_first) - 1  ->  np.cumsum(is_first)",
    ): "groups are numbered from 1: they are at most half as many as rows, so that there is room",
    (
        "checkers/transactions/list_rows.py",
        "mops.owner * max(1, len(mops.keys)) + mops.code  ->  mops.owner * max(1, len(mops.keys)) - mops.code",
    ): "one number for each transaction and key as well, and whoever compares two of them asks only if they are equal",
    (
        "checkers/transactions/list_rows.py",
        "np.cumsum(is_first) - 1  ->  np.cumsum(is_first) - 2",
    ): "the first group is kept behind all others, where there is room, and found there",
    (
        "checkers/transactions/list_rows.py",
        "np.cumsum(first_of_each(repeated.group)) - 1  ->  np.cumsum(first_of_each(repeated.group))",
    ): "groups are numbered from 1, as above",
    (
        "checkers/transactions/list_rows.py",
        "_repeated: True  ->  False",
    ): "the last micro-operation of all, alone with its key, is looked at like a group, and nothing follows from one",
    (
        "checkers/transactions/list_rows.py",
        "place < last[group]  ->  place <= last[group]",
    ): "the last append of a group is no read, so no read has its place",
    (
        "checkers/transactions/list_rows.py",
        "reader < append  ->  reader <= append",
    ): "a read and an append are never at one place",
    (
        "checkers/transactions/list_versions.py",
        "float(width.sum(dtype=np.float64)) <= _TABLE_SPARSITY * code.size + 1024  ->  "
        "float(width.sum(dtype=np.float64)) < _TABLE_SPARSITY * code.size + 1024",
    ): COST,
    (
        "checkers/transactions/list_versions.py",
        "_TABLE_SPARSITY * code.size + 1024  ->  _TABLE_SPARSITY * code.size",
    ): COST,
    (
        "checkers/transactions/list_versions.py",
        "_TABLE_SPARSITY * code.size + 1024  ->  _TABLE_SPARSITY * code.size + 1025",
    ): COST,
    (
        "checkers/transactions/list_versions.py",
        "if not len(code):\n    return np.empty(0, np.int64)  ->  pass",
    ): COST,
    (
        "checkers/transactions/list_versions.py",
        "len(self.keys) + 1  ->  len(self.keys) + 2",
    ): "nobody asks for the key behind the last",
    (
        "checkers/transactions/list_versions.py",
        "_find_writers: self.slots.count + 1  ->  self.slots.count + 2",
    ): "nobody asks for the slot between",
    (
        "checkers/transactions/list_versions.py",
        "_find_order: self.slots.count + 1  ->  self.slots.count + 2",
    ): "nobody asks for the slot between",
    (
        "checkers/graph/edges.py",
        "max(self.readers.group.max(initial=-1), self.writers.group.max(initial=-1)) + 1  ->  "
        "max(self.readers.group.max(initial=-1), self.writers.group.max(initial=-1)) + 2",
    ): "a number between two groups is nobody's",
    (
        "checkers/graph/paths.py",
        "len(self.steps.source) <= _PATH_EDGES  ->  len(self.steps.source) < _PATH_EDGES",
    ): COST,
    ("checkers/transactions/register_edges.py", "readers.count[group] > 0  ->  readers.count[group] >= 0"): COST,
    (
        "checkers/transactions/register_edges.py",
        "given.earlier < registers.count  ->  given.earlier <= registers.count",
    ): "of one register, writers of what comes after nothing stand in the tail twice: only the cost differs",
    (
        "checkers/transactions/check.py",
        "if not len(windows.start):\n    return Cycles(Search((), 0, ()), 0, 0, None)  ->  pass",
    ): COST,
    (
        "checkers/transactions/check.py",
        "if not report.sightings and (not found.named):\n    return []  ->  pass",
    ): COST,
    (
        "checkers/transactions/register_order.py",
        "if not len(one.earlier) or not len(other.earlier):\n"
        "    return other if not len(one.earlier) else one  ->  pass",
    ): COST,
    (
        "checkers/transactions/register_order.py",
        "process * max(1, len(registers.keys)) + registers.touch_code[rows]  ->  "
        "process * max(1, len(registers.keys)) - registers.touch_code[rows]",
    ): "one number for each process and register as well",
    (
        "checkers/transactions/register_order.py",
        "not len(one.earlier) or not len(other.earlier)  ->  not len(one.earlier) and (not len(other.earlier))",
    ): COST,
    (
        "checkers/transactions/register_order.py",
        "by_real_time 1: following >= 0  ->  following > 0",
    ): "the first in the order of ends is the next of nobody",
    (
        "checkers/transactions/register_order.py",
        "by_real_time 2: following >= 0  ->  following > 0",
    ): "the first in the order of ends is the next of nobody",
    (
        "checkers/transactions/register_order.py",
        "met[candidate] >= left[waiting]  ->  met[candidate] > left[waiting]",
    ): "more pairs are kept between near ones, and the same are reached: only the cost differs",
    (
        "checkers/transactions/register_order.py",
        "met >= 0  ->  met > 0",
    ): "before the first operation began nobody had ended, so what only it met comes after nothing",
    (
        "checkers/graph/paths.py",
        "len(self.steps.source) <= _PATH_EDGES  ->  len(self.steps.source) > _PATH_EDGES",
    ): "the same classes are found; the example of one may be longer, and a large graph costs more",
    (
        "checkers/transactions/check.py",
        "set(models.ruled_out([finding.anomaly])) <= broken  ->  set(models.ruled_out([finding.anomaly])) < broken",
    ): "the cycle that it restates is of a class that rules out more",
    ("checkers/graph/paths.py", "8 + high - low  ->  8 + high + low"): COST,
    (
        "checkers/graph/search.py",
        "target - source  ->  target + source",
    ): "others are tried first: the same classes are found, and the example of one may be longer",
    ("checkers/graph/search.py", "if not len(edges):\n    return  ->  pass"): COST,
    (
        "checkers/graph/certificate.py",
        "np.concatenate((moment[source[is_unmet]], moment[past])) + 1  ->  "
        "np.concatenate((moment[source[is_unmet]], moment[past])) + 2",
    ): WIDER,
    ("checkers/graph/certificate.py", "moment[source[active]] + 1  ->  moment[source[active]] + 2"): WIDER,
    ("checkers/graph/certificate.py", "moment + 1  ->  moment + 2"): WIDER,
    ("checkers/graph/certificate.py", "if not late.any():\n    break  ->  pass"): COST,
    (
        "checkers/graph/certificate.py",
        "writer_base + writers.op  ->  writer_base - writers.op",
    ): "the implicit edges that real time implies are made, and then left out like any other's: only the cost differs",
    (
        "checkers/graph/certificate.py",
        "due > moment[target[active]]  ->  due >= moment[target[active]]",
    ): "who is late by nothing moves nowhere, and is looked at again: only the cost differs",
    (
        "checkers/graph/certificate.py",
        "certify: 'right'  ->  'left'",
    ): "no suspect stands where a window stops",
    (
        "checkers/graph/certificate.py",
        "_backward: 'right'  ->  'left'",
    ): "who ended as a reader began makes the same window as an edge does",
    (
        "checkers/streams/rules/logs/real_time_order.py",
        "False  ->  True",
    ): "how many threads read a file, changes nothing of what they read",
    (
        "checkers/streams/rules/sessions/hand_over_hole.py",
        "if len(rows) == 0 and len(behind.watermark) == 0:\n    return Ruling.nothing()  ->  pass",
    ): "without rows of snapshots and holes behind them there is nothing to put together, and the same comes of it",
    (
        "checkers/streams/rules/sessions/hand_over_hole.py",
        "int(part.max()) + 1  ->  int(part.max()) + 2",
    ): "there is room for one part more, of nobody",
    (
        "checkers/streams/rules/sessions/hand_over_hole.py",
        "mark < own[-1]  ->  mark <= own[-1]",
    ): "a watermark is no row of a snapshot",
    (
        "checkers/streams/rules/sessions/hand_over_hole.py",
        "np.arange(len(part)) < mark  ->  np.arange(len(part)) <= mark",
    ): "a watermark is no row",
    (
        "checkers/streams/rules/sessions/resume_hole.py",
        "np.arange(len(view.session)) < last[view.session]  ->  np.arange(len(view.session)) <= last[view.session]",
    ): "a gap is no row, and only rows are asked about",
    (
        "checkers/streams/rules/sessions/resume_hole.py",
        "int(view.session.max(initial=-1)) + 1  ->  int(view.session.max(initial=-1)) + 2",
    ): "there is room for one session more, which nobody has",
    (
        "checkers/streams/rules/sessions/resume_hole.py",
        "int(self._known.max(initial=-1)) + 1  ->  int(self._known.max(initial=-1)) + 2",
    ): "there is room for one key more, and no row has the name NEVER",
    (
        "checkers/streams/epoch_fork.py",
        "False  ->  True",
    ): "how many threads read a file, changes nothing of what they read",
    (
        "checkers/streams/acknowledged.py",
        "reached[opens] > d.position[opens]  ->  reached[opens] >= d.position[opens]",
    ): "between an opening and an acknowledgement of its own position lies no write: only the cost differs",
    (
        "checkers/streams/acknowledged.py",
        "d.position[opened] < d.position[ack]  ->  d.position[opened] <= d.position[ack]",
    ): "between an opening and an acknowledgement of its own position lies no write: only the cost differs",
    (
        "checkers/streams/acknowledged.py",
        "is_apart & (d.position[opened] < d.position[ack])  ->  is_apart | (d.position[opened] < d.position[ack])",
    ): "what opens a session is its first event, so that acknowledgements before it are all of others",
    (
        "checkers/streams/acknowledged.py",
        "d.seq < crash  ->  d.seq <= crash",
    ): "a crash and an acknowledgement are two records of the journal",
    ("checkers/watermarks/disputes.py", "row.at > mark.at  ->  row.at >= mark.at"): "a watermark is no row",
    ("checkers/watermarks/disputes.py", "event.at < mark.at  ->  event.at <= mark.at"): "a watermark is no row",
    ("checkers/watermarks/disputes.py", "event.at > mark.at  ->  event.at >= mark.at"): "a watermark is no row",
    (
        "checkers/watermarks/disputes.py",
        "newest < write.rank  ->  newest <= write.rank",
    ): "a version that is missing is not held, and no other has its rank",
    (
        "checkers/watermarks/disputes.py",
        "_lacks: mark.span >= 0  ->  mark.span > 0",
    ): "whoever asks has found that the mark contains a row, or is one node with another: it is of the whole stream",
    (
        "checkers/watermarks/disputes.py",
        "marker.at <= until.at  ->  marker.at < until.at",
    ): "neither a watermark nor a row is a marker",
    (
        "checkers/watermarks/disputes.py",
        "shown & (deliveries.key != NEVER)  ->  shown | (deliveries.key != NEVER)",
    ): "events of other keys are looked at as well, and tell nothing: only the cost differs",
    (
        "checkers/engine/wire.py",
        "int(length.min(initial=0, where=~is_open)) - 1  ->  int(length.min(initial=0, where=~is_open)) - 2",
    ): "a number that is no length, as well",
    ("checkers/engine/wire.py", "False  ->  True"): COST,
    (
        "checkers/transactions/list_anomalies.py",
        "int(versions.read_length.max(initial=0)) + 1  ->  int(versions.read_length.max(initial=0)) + 2",
    ): "there is room for one length more, which no read has",
    (
        "checkers/transactions/list_anomalies.py",
        "int(version.max(initial=0)) + 1  ->  int(version.max(initial=0)) + 2",
    ): "a number between is no version's",
    (
        "checkers/transactions/list_anomalies.py",
        "_disordered: len(rows.appends.op) + 1  ->  len(rows.appends.op) + 2",
    ): "there is room for one append more, which nobody asks for",
    (
        "checkers/columns/runs.py",
        "high - low > _TABLE_SPARSITY * values.size + 1024  ->  high - low >= _TABLE_SPARSITY * values.size + 1024",
    ): COST,
    ("checkers/columns/runs.py", "_TABLE_SPARSITY * values.size + 1024  ->  _TABLE_SPARSITY * values.size"): COST,
    (
        "checkers/columns/runs.py",
        "_TABLE_SPARSITY * values.size + 1024  ->  _TABLE_SPARSITY * values.size + 1025",
    ): COST,
    (
        "checkers/streams/rules/logs/real_time_order.py",
        "_first_end_of_others(ops) < ops.invoke_seq  ->  _first_end_of_others(ops) <= ops.invoke_seq",
    ): "an answer and an invocation are two records of the journal",
    ("checkers/columns/runs.py", "high - low + 1  ->  high - low + 2"): "nobody asks for the place behind the last",
    ("checkers/columns/runs.py", "common_prefix 1: 'right'  ->  'left'"): COST,
    ("checkers/columns/runs.py", "count <= _BYTE  ->  count < _BYTE"): COST,
    (
        "checkers/transactions/list_anomalies.py",
        "versions.read_code[plain] * longest + versions.read_length[plain]  ->  "
        "versions.read_code[plain] * longest - versions.read_length[plain]",
    ): "one number for each version as well, and below those of what was seen in no order",
    (
        "checkers/transactions/list_anomalies.py",
        "np.concatenate(([-1], last_ok[:-1]))[hit] + 1  ->  np.concatenate(([-1], last_ok[:-1]))[hit]",
    ): "where an ok one stands no failed one does, so that the next failed one is the same",
    (
        "checkers/transactions/list_anomalies.py",
        "len(odd.read) + 1  ->  len(odd.read) + 2",
    ): "nobody asks for the bound behind the last",
    ("checkers/graph/certificate.py", "known.last // slice_ids + 1  ->  known.last // slice_ids + 2"): COST,
    (
        "checkers/transactions/uncertified.py",
        "known.last // slice_ids + 1  ->  known.last // slice_ids + 2",
    ): COST,
    (
        "checkers/transactions/uncertified.py",
        "known.last // slice_ids + 1  ->  known.last // slice_ids",
    ): "threads do not ask how many slices there are; Spark, whose tests are not among those of a mutant, fails with 0",
}
