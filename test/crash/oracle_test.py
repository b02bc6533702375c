"""The oracle of the crash tests: what it lets pass, and what it does not."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))
import oracle  # noqa: E402  the folder must be known first
import pif_system  # noqa: E402

PUT = ("put", "/f", 1, 100, 4)  # records 0 to 3 of file 1, written by 1


def refuses(judge, seen, why):
    try:
        judge.observe("/", seen)
    except pif_system.Failure as failure:
        pif_system.check(why in str(failure), f"{failure} does not say {why!r}")
        return
    pif_system.check(False, f"{seen} was let pass")


def after(*operations):
    judge = oracle.Oracle()
    for operation in operations:
        judge.acknowledged(operation)
    return judge


def what_was_acknowledged_must_be_there():
    after(PUT).observe("/", {"/f": (100, [(1, 0, 1, 4)])})
    refuses(after(PUT), {}, "is not there")
    refuses(after(PUT), {"/f": (100, [(1, 0, 1, 3)])}, "3 records instead of 4")
    refuses(after(PUT, ("overwrite", "/f", 1, 2, 7)), {"/f": (100, [(1, 0, 1, 4)])}, "record 1 is of write 1")
    refuses(after(PUT, ("append", "/f", 4, 2, 8)), {"/f": (100, [(1, 0, 1, 4)])}, "4 records instead of 6")
    refuses(after(PUT, ("rename", "/f", "/g")), {"/f": (100, [(1, 0, 1, 4)])}, "/f is there")
    refuses(after(PUT, ("remove", "/f")), {"/f": (100, [(1, 0, 1, 4)])}, "/f is there")
    refuses(after(PUT, ("copy", "/f", "/g")), {"/f": (100, [(1, 0, 1, 4)])}, "/g is not there")


def what_nobody_made_must_not_be_there():
    refuses(after(), {"/x": (100, [])}, "/x is there")
    refuses(after(PUT), {"/f": (100, [(2, 0, 1, 4)])}, "of file 2")
    refuses(after(PUT), {"/f": (100, [(1, 1, 1, 4)])}, "record 0 is record 1")
    refuses(after(PUT), {"/f": (64, [(1, 0, 1, 4)])}, "records of 64 bytes")


def what_was_not_acknowledged_is_there_wholly_or_not_at_all():
    for seen in ([(1, 0, 1, 4)], [(1, 0, 1, 4), (1, 4, 8, 2)]):
        judge = after(PUT)
        judge.unknown(("append", "/f", 4, 2, 8))
        judge.observe("/", {"/f": (100, seen)})
        judge.observe("/", {"/f": (100, seen)})
    judge = after(PUT)
    judge.unknown(("append", "/f", 4, 2, 8))
    refuses(judge, {"/f": (100, [(1, 0, 1, 4), (1, 4, 8, 1)])}, "5 records")
    judge = after(PUT)
    judge.unknown(("append", "/f", 4, 2, 8))
    judge.observe("/", {"/f": (100, [(1, 0, 1, 4), (1, 4, 8, 2)])})
    refuses(judge, {"/f": (100, [(1, 0, 1, 4)])}, "4 records instead of 6")  # what was seen stays


def an_overwrite_is_done_record_by_record_and_never_undone():
    judge = after(PUT)
    judge.unknown(("overwrite", "/f", 0, 3, 9))
    judge.observe("/", {"/f": (100, [(1, 0, 9, 1), (1, 1, 1, 3)])})
    judge.observe("/", {"/f": (100, [(1, 0, 9, 2), (1, 2, 1, 2)])})  # its second record came late
    refuses(judge, {"/f": (100, [(1, 0, 1, 4)])}, "record 0 is of write 1")


def an_append_may_be_late_where_that_may_be():
    for may_be_late in (True, False):
        judge = oracle.Oracle(may_be_late)
        judge.acknowledged(PUT)
        judge.unknown(("append", "/f", 4, 2, 8))
        judge.observe("/", {"/f": (100, [(1, 0, 1, 4)])})
        pif_system.check(judge.is_late("/f", 4, 6) == may_be_late, "it would lie in front of the next one")
        pif_system.check(not judge.is_late("/f", 4, 7), "it has two records")
        if may_be_late:
            refuses(judge, {"/f": (100, [(1, 0, 1, 4), (1, 4, 8, 1)])}, "5 records")
            judge.observe("/", {"/f": (100, [(1, 0, 1, 4), (1, 4, 8, 2)])})
        refuses(judge, {"/f": (100, [(1, 0, 1, 4), (1, 4, 8, 1)])}, "5 records")
        judge.forget(1)
        judge.observe("/", {})


def appends_of_several_clients_are_there_once_and_whole():
    def log(must, may):
        judge = oracle.LogOracle(5)
        judge.must, judge.may = dict(must), dict(may)
        return judge

    log({10: 2, 11: 3}, {12: 1}).observe("/l", [(5, 0, 11, 3), (5, 0, 10, 2)])
    log({10: 2}, {12: 1}).observe("/l", [(5, 0, 12, 1), (5, 0, 10, 2)])
    refuses(log({10: 2, 11: 3}, {}), [(5, 0, 10, 2)], "lost: [11]")
    refuses(log({10: 2}, {}), [(5, 0, 10, 2), (5, 0, 10, 2)], "twice")
    refuses(log({10: 2}, {}), [(5, 0, 10, 1)], "1 records, not 2")
    refuses(log({}, {12: 3}), [(5, 0, 12, 2)], "2 records, not 3")
    refuses(log({10: 2}, {}), [(5, 0, 10, 2), (5, 0, 13, 1)], "nobody")
    for may_be_late in (True, False):
        judge = oracle.LogOracle(5, may_be_late)
        judge.unknown(12, 1)
        judge.observe("/l", [])
        if may_be_late:
            judge.observe("/l", [(5, 0, 12, 1)])
            refuses(judge, [], "lost: [12]")
        else:
            refuses(judge, [(5, 0, 12, 1)], "nobody")


if __name__ == "__main__":
    sys.exit(
        pif_system.main(
            [
                what_was_acknowledged_must_be_there,
                what_nobody_made_must_not_be_there,
                what_was_not_acknowledged_is_there_wholly_or_not_at_all,
                an_overwrite_is_done_record_by_record_and_never_undone,
                an_append_may_be_late_where_that_may_be,
                appends_of_several_clients_are_there_once_and_whole,
            ]
        )
    )
