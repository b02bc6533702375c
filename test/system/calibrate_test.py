"""What pif calibrate keeps, and what tools make of it: predictions in plans and reports, or why there are none."""

import json
import os
import sys

import pif_system
from pif_system import check

FS = None
PHASES = ["connect", "create", "spawn", "seal", "commit", "total"]


def path():
    return os.path.join(FS.folder, "calibration.json")


def kept():
    with open(path(), encoding="utf-8") as file:
        return json.load(file)


def keep(calibration):
    with open(path(), "w", encoding="utf-8") as file:
        json.dump(calibration, file)


def plan_of(*words):
    return json.loads(FS.ok(*words, "--json", "--explain"))


def nothing_is_predicted_without_a_calibration():
    FS.fails(3, "no calibration: run: pif calibrate", "calibrate", "--explain")
    for tool in (["sort"], ["copy"], ["transpose", "--columns", "800"]):
        words = [*tool, "/some", "/out"]
        plan = plan_of(*words)
        check("run: pif calibrate" in plan["predicted"], f"{words}: {plan}")
        report = FS.json(*words)
        check("run: pif calibrate" in report["calibration"], f"{words}: {report}")
        parts = report.get("predictions", {})
        check(all("predicted" not in part and part["measured"] > 0 for part in parts.values()), f"{words}: {parts}")


def a_calibration_is_kept_with_the_file_system():
    FS.ok("mkdir", "/.pif-calibrate")  # as a run leaves it that was killed
    FS.ok("calibrate", "-q", timeout=600)
    seconds = kept()["seconds"]
    check(min(seconds.values()) >= 0, f"{seconds}")
    # What is solved for may be nothing, where other programs made one run slower than another.
    for name in ("memory_byte", "cached_read_byte", "compare", "sync", "hop", "connect", "spawn", "merge_fixed"):
        check(seconds[name] > 0, f"{name} in {seconds}")
    FS.fails(3, "pif-calibrate", "stat", "/.pif-calibrate")
    before = os.stat(path()).st_mtime_ns
    FS.ok("calibrate", "--if-needed")
    check(os.stat(path()).st_mtime_ns == before, "it was not needed")


def plans_and_reports_predict_every_phase():
    table = plan_of("calibrate")
    for name in ("T_act", "T_pass", "T_delete", "T_fixed", "crossings", "p_max"):
        check(f"figure_{name}" in table and f"batched_{name}" in table, f"{name} in {table}")
    for chosen, words in (
        ("predicted", ["copy", "/some", "/out"]),
        ("predicted_split", ["sort", "/some", "/out"]),
        ("predicted_token", ["sort", "--merge", "token", "/some", "/out"]),
        ("predicted_pipelined", ["sort", "--merge", "pipelined", "--token-batch", "64", "/some", "/out"]),
        ("predicted_direct", ["transpose", "--columns", "800", "/some", "/out"]),
        ("predicted_recursive", ["transpose", "--columns", "800", "--algorithm", "recursive", "/some", "/out"]),
    ):
        plan = plan_of(*words)
        check("page cache" in plan["assumed"] and " s: connect" in plan[chosen], f"{words}: {plan}")
        check(chosen == "predicted" or "this is what will be done" in plan[chosen], f"{words}: {plan}")
        parts = FS.json(*words)["predictions"]
        check(set(PHASES) <= set(parts), f"{words}: {parts}")
        for name, part in parts.items():
            check(part["predicted"] >= 0 and part["measured"] >= 0, f"{words}: {name}: {part}")
    check("T_pass" in plan_of("sort", "--merge", "token", "/some", "/out"), "the thesis's constants")
    check(b"total: predicted" in FS.ok("sort", "--verbose", "-q", "/some", "/out"), "a report for people")


def what_is_to_blame_is_named():
    calibration = kept()
    slow = json.loads(json.dumps(calibration))
    slow["seconds"]["commit"] = 100
    keep(slow)
    total = FS.json("copy", "/some", "/out")["predictions"]["total"]
    check(total["predicted"] > 100, f"{total}")
    check("to_blame" not in total or total["to_blame"] == "commit: commit", f"{total}")
    keep(calibration)


def a_calibration_of_something_else_is_not_used():
    calibration = kept()
    for change, text in (
        ({"hardware": dict(calibration["hardware"], processor="an abacus")}, "an abacus there"),
        ({"hardware": dict(calibration["hardware"], version="0.0.0")}, "0.0.0 there"),
        ({"seconds": {}}, "it is no calibration"),
        ({"format": 77}, "of another format"),
    ):
        keep(dict(calibration, **change))
        plan = plan_of("sort", "/some", "/out")
        check(text in plan["predicted"] and "run: pif calibrate" in plan["predicted"], f"{text}: {plan}")
        check(text in FS.json("copy", "/some", "/out")["calibration"], text)
        FS.fails(3, text, "calibrate", "--explain")
    keep(calibration)
    check("predicted_split" in plan_of("sort", "/some", "/out"), "it is used again")


TESTS = [
    nothing_is_predicted_without_a_calibration,
    a_calibration_is_kept_with_the_file_system,
    plans_and_reports_predict_every_phase,
    what_is_to_blame_is_named,
    a_calibration_of_something_else_is_not_used,
]


def main():
    global FS
    with pif_system.FileSystem(3) as FS:
        FS.ok("put", "-q", "--record-length", "100", "-", "/some", data=os.urandom(100_000))
        return pif_system.main(TESTS, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
