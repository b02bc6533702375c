"""The hosts of tests: what they share and what not, faults that strike them, and that nothing of them is left."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from hosts import BIN, Failure, Hosts, await_condition, check, text, why_not  # isort: skip
from pif_system import main

HERE = os.path.dirname(os.path.abspath(__file__))


def hears(host, address, seconds=1):
    """Whether a ping comes back."""
    # bash can connect; a refusal is an answer.
    done = host.run("timeout", str(seconds), "bash", "-c", f"exec 3<>/dev/tcp/{address}/9")
    return b"refused" in done.stderr


def check_hears(host, address, wanted):
    await_condition(lambda: hears(host, address) == wanted, f"{host.name} hears {address}: {wanted}", 10)


def hosts_see_each_other_by_the_network_alone():
    with Hosts(3) as hosts:
        hosts[0].ok("sh", "-c", "echo one >/srv/x; echo one >/tmp/x; echo one >/run/x")
        for folder in ("/srv", "/tmp", "/run"):
            check(hosts[0].ok("cat", folder + "/x") == b"one\n", folder)
            check(hosts[1].run("cat", folder + "/x").returncode != 0, f"{folder} of h2 is its own")
            check(not os.path.exists(folder + "/x"), f"{folder} of the machine is not theirs")
        check(hosts[2].ok("hostname") == b"h3\n", "its name")
        check(len(re.findall(r"^\d+:", text(hosts[1].ok("ip", "link")), re.M)) == 2, "lo and eth0 are all it has")
        for host in hosts:
            for other in hosts:
                check(hears(host, other.address) and hears(host, other.name), f"{host.name} hears {other.name}")
                check(hears(host, other.address6), f"{host.name} hears {other.name} by IPv6")
        links = subprocess.run(["ip", "link"], stdout=subprocess.PIPE, text=True, check=True).stdout
        check("br0" not in links and "v1@" not in links, f"nothing of it is in the machine's own network: {links}")


def the_remote_shell_runs_a_line_with_its_streams():
    with Hosts(2) as hosts:
        shell = ["/mnt/nsrun", "10.77.0.2"]
        check(hosts[0].ok(*shell, "hostname") == b"h2\n", "there")
        check(hosts[0].ok(*shell, "cat", data=b"a line") == b"a line", "its standard input")
        check(hosts[0].ok(*shell, "echo", "a;", "echo", "b") == b"a\nb\n", "it is a line of shell, as with ssh")
        done = hosts[0].run(*shell, "echo wrong >&2; exit 7")
        check(done.returncode == 7 and done.stderr == b"wrong\n", f"{done}")
        hosts[1].power_off()
        done = hosts[0].run(*shell, "hostname")
        check(done.returncode == 255 and b"No route" in done.stderr, f"{done}")


def faults_strike_and_pass():
    with Hosts(2) as hosts:
        one, two = hosts
        two.link(False)
        check_hears(one, "h2", False)
        two.link(True)
        check_hears(one, "h2", True)
        for direction in ("input", "output"):
            two.cut(direction)
            check_hears(one, "h2", False)
            two.mend()
            check_hears(one, "h2", True)
        two.ok("sh", "-c", "echo kept >/srv/x; echo gone >/tmp/x; sleep 1000 >/dev/null 2>&1 &")
        check(two.processes("sleep") == ["sleep", "sleep"], "one of them is the host's first process")
        two.power_off()
        check_hears(one, "h2", True)  # the network answers, and nobody listens
        two.power_on()
        await_condition(lambda: two.processes("sleep") == ["sleep"], "its first process runs, and no other one")
        check(two.ok("cat", "/srv/x") == b"kept\n", "as after a power cut")
        check(two.run("cat", "/tmp/x").returncode != 0, "/tmp is new")


def milliseconds(host, address):
    """The shortest of a few round trips of a connection."""
    line = (
        "import socket,time\nbest=9\n"
        "for i in range(5):\n s=socket.socket()\n t=time.monotonic()\n s.connect_ex((%r,9))\n"
        " best=min(best,time.monotonic()-t)\nprint(best*1000)" % address
    )
    return float(host.ok("python3", "-c", line))


def frames_are_late_or_lost_as_asked():
    with Hosts(2) as hosts:
        check(milliseconds(hosts[0], "10.77.0.2") < 10, "at once")
        hosts[1].set_delay(20)
        late = milliseconds(hosts[0], "10.77.0.2")
        check(40 <= late < 60, f"20 ms there and 20 ms back: {late}")
        hosts[1].set_delay(None)
        check(milliseconds(hosts[0], "10.77.0.2") < 10, "at once again")


def nothing_is_left_when_the_test_is_killed():
    script = (
        "from hosts import Hosts\nimport sys\n"
        "h = Hosts(2)\nh[0].start('sleep', '7777')\nprint('up', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=HERE, stdin=-1, stdout=-1, text=True) as test:
        check(test.stdout.readline() == "up\n", "it has hosts")
        await_condition(lambda: running("sleep\0007777"), "it has a process there", 10)
        test.send_signal(signal.SIGKILL)
        test.stdout.close()
    await_condition(lambda: not running("sleep\0007777"), "all has ended", 10)


def a_tree_is_where_it_is_also_in_a_folder_that_hosts_have_of_their_own():
    for where in ("/tmp", "/srv", "/run"):
        with tempfile.TemporaryDirectory(prefix="pif a tree ", dir=where) as temp:
            tree = os.path.join(temp, "pif")
            for room in ("hosts", "system"):
                shutil.copytree(os.path.join(HERE, "..", room), os.path.join(tree, "test", room))
            words = [os.path.join(tree, "test/hosts/with-hosts"), "1", "--disk", "64M", "--programs", BIN, "--"]
            line = "pwd; cat test/hosts/nsrun >/dev/null && pif --version && touch /srv/x /tmp/x /run/x && echo there"
            done = subprocess.run([*words, "sh", "-c", line], cwd=tree, stdout=-1, stderr=-1, text=True, check=False)
            check(done.returncode == 0 and done.stdout.endswith("there\n"), f"below {where}: {done}")
            check(done.stdout.startswith(tree + "\n"), f"in the same folder: {done.stdout}")


def running(words):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                found += [pid] if words in file.read() and int(pid) != os.getpid() else []
        except OSError:
            continue
    return found


TESTS = [
    hosts_see_each_other_by_the_network_alone,
    the_remote_shell_runs_a_line_with_its_streams,
    faults_strike_and_pass,
    frames_are_late_or_lost_as_asked,
    nothing_is_left_when_the_test_is_killed,
    a_tree_is_where_it_is_also_in_a_folder_that_hosts_have_of_their_own,
]

if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    sys.exit(main(TESTS, sys.argv[1:]))
