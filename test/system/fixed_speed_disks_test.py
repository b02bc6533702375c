"""scripts/fixed-speed-disks: the rules are there while the disks are, and nothing is left afterwards."""

import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time

from pif_system import await_condition, check, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "fixed-speed-disks")
sys.path.insert(0, os.path.join(ROOT, "bench", "scaling"))
import disks  # noqa: E402  the folder must be known first

SPEED = 50_000_000
BYTES = 20 << 20
WHERE = None


def script(command, *words):
    return subprocess.run(
        [SCRIPT, command, "--where", WHERE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )


def ok(command, *words):
    done = script(command, *words)
    check(done.returncode == 0, f"{command} {words}: {done}")
    return done.stdout


def run_words(count, *command):
    return ["run", "--where", WHERE, str(count), "--size", "300M", "--", *command]


def check_nothing_left(numbers):
    check(not disks.find(WHERE) and not disks.find(os.path.join(WHERE, "run")), "no loop device is left")
    left = [os.path.join(folder, name) for folder, folders, files in os.walk(WHERE) for name in folders + files]
    check(left in ([], [os.path.join(WHERE, "run")]), f"{left} are left")
    for number in numbers:
        check(disks.rules_of(number) == [0, 0], f"a rule for {number} is left")
    check(not any(where.startswith(WHERE) for device, where in disks.mounts()), "nothing is mounted there")


def seconds(function, *arguments):
    begin = time.monotonic()
    function(*arguments)
    return time.monotonic() - begin


def read_direct(device):
    with mmap.mmap(-1, 1 << 20) as page:  # aligned, as direct I/O wants it
        file = os.open(device, os.O_RDONLY | os.O_DIRECT)
        for _ in range(BYTES >> 20):
            os.readv(file, [page])
        os.close(file)


def write_synced(path):
    with open(path, "wb") as file:
        file.write(os.urandom(BYTES))
        os.fsync(file.fileno())


def disks_are_held_to_their_speed_and_go_without_a_trace():
    points = ok("up", "2", "--size", "300M", "--speed", "50MB").split()
    made = disks.find(WHERE)
    numbers = [disk.number for disk in made]
    check([disk.mount_point for disk in made] == points and len(points) == 2, f"{points}")
    for disk in made:
        check(disks.rules_of(disk.number) == [SPEED, SPEED], f"{disk.number}: {disks.rules_of(disk.number)}")
        check(disk.mounted_on() == [disk.mount_point], f"{disk.mounted_on()}")
    read, written = made[0].bytes_moved()
    took = seconds(read_direct, made[0].device), seconds(write_synced, os.path.join(points[0], "file"))
    check(made[0].bytes_moved() >= (read + BYTES, written + BYTES), "bytes come from the disk and reach it")
    print(
        f"      read {BYTES / took[0] / 1e6:.0f} MB/s, written {BYTES / took[1] / 1e6:.0f} MB/s,"
        f" held to {SPEED / 1e6:.0f}"
    )
    check("there are disks" in script("up", "1").stderr, "they are not made twice")
    ok("down")
    check_nothing_left(numbers)
    ok("down")


def a_run_has_them_as_long_as_its_command():
    said = subprocess.run(
        [SCRIPT, *run_words(2, "sh", "-c", "echo $FIXED_SPEED_DISKS; exit 5")],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    check(said.returncode == 5, f"exit code of the command: {said}")
    check(said.stdout.strip().split(":") == [os.path.join(WHERE, "run", f"disk{i}") for i in (0, 1)], said.stdout)
    check_nothing_left([])


def started_run():
    """A run whose command stands on its disk, and says so first."""
    stay = "cd $FIXED_SPEED_DISKS && echo ready && exec sleep 1000"
    process = subprocess.Popen([SCRIPT, *run_words(1, "sh", "-c", stay)], stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "ready\n", "the command runs")
    return process


def a_run_that_is_ended_takes_them_down():
    with started_run() as process:
        numbers = [disk.number for disk in disks.find(os.path.join(WHERE, "run"))]
        check("somebody is at work" in script("run", "1", "true").stderr, "one run at a time")
        process.terminate()
        check(process.wait(60) == 128 + signal.SIGTERM, f"{process.returncode}")
    check_nothing_left(numbers)


def what_a_killed_run_left_is_found_and_undone():
    with started_run() as process:
        left = disks.find(os.path.join(WHERE, "run"))
        process.kill()
        process.wait(60)
        check(disks.rules_of(left[0].number) == [SPEED, SPEED], "a killed run takes nothing down")
        refused = script("down")
        check(refused.returncode == 3 and "use it" in refused.stderr, f"who uses it is named: {refused}")
        ok(*run_words(1, "true")[:1], "1", "--size", "300M", "--", "true")
        check(process.stdout.read() == "", "its command has ended")
    check_nothing_left([disk.number for disk in left])


def a_run_killed_while_it_makes_them_leaves_nothing_that_down_does_not_find():
    for moment in (2, 4, 5):
        with subprocess.Popen([SCRIPT, *run_words(3, "true")]) as process:
            await_condition(
                lambda: len(os.listdir(os.path.join(WHERE, "run"))) >= moment
                if os.path.isdir(os.path.join(WHERE, "run"))
                else process.poll() is not None,
                "it is at work",
            )
            process.kill()
        await_condition(lambda: script("down", "--force").returncode == 0, "what it had started has ended")
        check_nothing_left([])


def run_all():
    global WHERE
    reason = disks.why_not()
    if reason:
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory(prefix="pif-disks-", dir="/var/tmp") as temp:
        WHERE = os.path.join(temp, "disks")
        try:
            return main(
                [
                    disks_are_held_to_their_speed_and_go_without_a_trace,
                    a_run_has_them_as_long_as_its_command,
                    a_run_that_is_ended_takes_them_down,
                    what_a_killed_run_left_is_found_and_undone,
                    a_run_killed_while_it_makes_them_leaves_nothing_that_down_does_not_find,
                ]
            )
        finally:
            script("down", "--force")


if __name__ == "__main__":
    sys.exit(run_all())
