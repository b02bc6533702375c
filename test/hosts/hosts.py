"""Hosts for tests: each has a network, mount, UTS and PID namespace of its own, and a cable to one bridge.

`with Hosts(3) as hosts:` has h1, h2 and h3 with the addresses 10.77.0.1 and fd77::1 and so on, and folders /srv, /run
and /tmp of their own, in memory. This tree is where it is also if that is in one of those. Programs of this build are
in their PATH. Nothing of it is in the machine's own
namespaces: the bridge is in one, too. All of it is in a PID namespace whose first process ends when this process does,
however that ends, or after `seconds`; so nothing is left behind.

The tests' remote shell is /mnt/nsrun, on every host: `nsrun ADDRESS COMMAND...` is as ssh.
"""

import array
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from pif_system import BIN, Failure, await_condition, check  # noqa: E402  the folder must be known first

NSRUN = "/mnt/nsrun"
HOSTS_MAX = 64
FDS_BYTES = 4096  # of one command of nsrun
PROGRAMS = ("ip", "nft", "tc", "nsenter", "unshare", "mount", "timeout")

# Folders that lie where something was mounted just now are there again.
SHOW = """
show() {
  at=0
  for path; do
    at=$((at + 1))
    [ "$path" -ef "/mnt/seen/$at" ] || { mkdir -p "$path" && mount --rbind "/mnt/seen/$at" "$path"; } || exit 1
  done
}
"""

# The first process of all. It ends when the other end of its standard input is closed.
WORLD = """
seconds=$1 programs=$2
shift 2
mount -t tmpfs -o size=64M none /mnt && mkdir /mnt/bin && mount --bind "$programs" /mnt/bin || exit 1
at=0
for path; do
  at=$((at + 1))
  mkdir -p "/mnt/seen/$at" && mount --rbind "$path" "/mnt/seen/$at" || exit 1
done
ip link set lo up && ip link add br0 type bridge && ip link set br0 up || exit 1
echo ready
exec timeout "$seconds" cat >/dev/null
"""

# What stays of a host when its power goes: its cables and its disk.
BOX = (
    SHOW
    + """
hostname "$1" && ip link set lo up || exit 1
mount -t tmpfs -o "size=$2" none /srv && mkdir /srv/home && mount --bind /mnt/hosts /etc/hosts || exit 1
shift 2
show "$@"
echo ready
exec sleep infinity
"""
)

# The first process of a host. What is orphaned is its child, and goes when it ends.
POWER = (
    SHOW
    + """
mount -t tmpfs -o size=256M none /run && mount -t tmpfs -o "size=$1" none /tmp && chmod 1777 /tmp || exit 1
shift
show "$@"
echo ready
exec env --ignore-signal=CHLD sleep infinity
"""
)


def why_not():
    """Why this machine cannot have them, or nothing."""
    if os.geteuid() != 0:
        return "only root can make namespaces"
    for program in PROGRAMS:
        if not shutil.which(program):
            return f"there is no {program}"
    if ROOT.startswith("/mnt/"):
        return f"this tree, {ROOT}, is below /mnt, which hosts have of their own"
    made = call_quietly("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "nft", "list", "tables")
    return "" if made.returncode == 0 else f"no namespaces with nftables: {made.stderr.strip()}"


def call_quietly(*words, data=None):
    return subprocess.run(
        words, input=data, stdin=None if data else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, check=False,
    )  # fmt: skip


def call(*words, data=None):
    """What it prints. If it fails, what it said is the failure's text."""
    done = call_quietly(*words, data=data)
    check(done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def children_of(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    return []


class Namespace:
    """A process that says "ready" and stays, in namespaces that it has just entered or made."""

    def __init__(self, words, stdin=subprocess.DEVNULL):
        # PID namespaces know no others' numbers: it is found as the last of a chain of children.
        self.process = subprocess.Popen(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            self.process.kill()
            raise Failure(f"{' '.join(words[:8])}...: {self.process.stderr.read().strip()}")
        self.pid = self.process.pid
        while children := children_of(self.pid):
            self.pid = children[0]

    def enter(self, *kinds):
        return ["nsenter", "-t", str(self.pid), *[f"--{kind}" for kind in kinds], "--"]

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait(30)
        self.process.stdout.close()
        self.process.stderr.close()


class Host:
    """One of them, by its number from 1. Use Hosts."""

    def __init__(self, hosts, number):
        self.hosts = hosts
        self.number = number
        self.name = f"h{number}"
        self.address, self.address6 = f"10.77.0.{number}", f"fd77::{number:x}"
        self.is_reachable = True
        self.delay = None
        self.box = Namespace(
            hosts.world.enter("mount", "pid")
            + ["unshare", "--net", "--mount", "--uts", "sh", "-c", BOX, "box", self.name, hosts.disk, *hosts.seen]
        )
        self.plug_in()
        self.power = None
        self.power_on()

    def plug_in(self):
        call(*self.hosts.world.enter("net"), "ip", "-batch", "-", data=f"""
link add v{self.number} type veth peer name eth0 netns {self.box.pid}
link set v{self.number} master br0 up
""")  # fmt: skip
        call(*self.box.enter("net"), "ip", "-batch", "-", data=f"""
link set eth0 up
addr add {self.address}/24 dev eth0
addr add {self.address6}/64 dev eth0 nodad
""")  # fmt: skip

    # ---- processes ----

    def power_on(self):
        check(self.power is None, f"{self.name} is on already")
        self.power = Namespace(
            self.box.enter("net", "mount", "uts", "pid")
            + ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", POWER, "power", self.hosts.disk]
            + self.hosts.seen
        )

    def power_off(self):
        """kill -9 of everything there; /run and /tmp are gone, /srv stays."""
        self.power.kill()
        self.power = None

    def start(self, *words, **options):
        """A command there, in /, as root: a Popen."""
        check(self.power is not None, f"{self.name} is off")
        options.setdefault("env", self.hosts.env)
        return subprocess.Popen(
            self.power.enter("net", "mount", "uts", "pid") + list(words),
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def run(self, *words, data=b"", timeout=120, **options):
        """The command's end; its output in bytes."""
        process = self.start(*words, stdin=subprocess.PIPE, **options)
        try:
            out, error = process.communicate(data, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(words, process.returncode, out, error)

    def ok(self, *words, **options):
        """stdout of a command that must succeed."""
        done = self.run(*words, **options)
        check(done.returncode == 0, f"{self.name}: {' '.join(words)}: exit {done.returncode}: {text(done.stderr)}")
        return done.stdout

    def path(self, path):
        """Where a file there is for this process."""
        return f"/proc/{self.box.pid}/root{path}"

    def write(self, path, data):
        with open(self.path(path), "wb") as file:
            file.write(data)

    def processes(self, *programs):
        """Names of what runs there, of these programs."""
        names = text(self.ok("sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null; true")).split("\n")
        return sorted(name for name in names if name in programs)

    def sent_bytes(self):
        """What has left it by its cable so far, frames as a whole."""
        shown = json.loads(call(*self.box.enter("net"), "ip", "-json", "-statistics", "link", "show", "eth0"))
        return shown[0]["stats64"]["tx"]["bytes"]

    # ---- faults ----

    def link(self, is_up):
        """The cable to the bridge is in or out."""
        call(*self.hosts.world.enter("net"), "ip", "link", "set", f"v{self.number}", "up" if is_up else "down")
        self.is_reachable = is_up

    def cut(self, direction):
        """Packets in one direction are dropped: "input" or "output". mend() ends it."""
        device = {"input": "iifname", "output": "oifname"}[direction]
        self.nft(f'add rule inet cut {direction} {device} "eth0" drop', direction)
        self.is_reachable = False

    def lose(self, percent):
        """So many of 100 packets that arrive are dropped, at random."""
        self.nft(f'add rule inet cut input iifname "eth0" numgen random mod 100 < {percent} drop', "input")

    def nft(self, rule, chain):
        call(*self.box.enter("net"), "nft", "-f", "-", data=f"""
add table inet cut
add chain inet cut {chain} {{ type filter hook {chain} priority 0; }}
{rule}
""")  # fmt: skip

    def mend(self):
        call_quietly(*self.box.enter("net"), "nft", "delete", "table", "inet", "cut")
        self.is_reachable = True

    def limit(self, rate):
        """At most so many bytes a second in either direction, "50mbps" for 50 MB/s; None: no limit any more."""
        for where, device in ((self.box, "eth0"), (self.hosts.world, f"v{self.number}")):
            call_quietly(*where.enter("net"), "tc", "qdisc", "del", "dev", device, "root")
            if rate:
                shape = ["tbf", "rate", rate, "burst", "512k", "latency", "100ms"]
                call(*where.enter("net"), "tc", "qdisc", "add", "dev", device, "root", *shape)

    def set_delay(self, ms, loss=0.0):
        """Every frame arrives so much later, in either direction, and a share of 100 never; None: at once."""
        number, in_world = self.number, self.hosts.world.enter("net")
        if self.delay:
            self.delay.kill()
            self.delay = None
            call(*in_world, "ip", "-batch", "-", data=f"link del w{number}\nlink set v{number} master br0\n")
        if ms is not None:
            call(*in_world, "ip", "-batch", "-", data=f"""
link set v{number} nomaster
link add w{number} type veth peer name x{number}
link set w{number} up
link set x{number} master br0 up
""")  # fmt: skip
            words = [self.hosts.delay_program, f"v{number}", f"w{number}", str(ms), str(loss)]
            for host in self.hosts:
                call(*host.box.enter("net"), self.hosts.delay_program, "--checksums", "eth0")
            self.delay = Namespace(self.hosts.world.enter("net", "pid") + words)

    def close(self):
        if self.delay:
            self.delay.kill()
        if self.power:
            self.power_off()
        self.box.kill()


class Hosts:
    """So many hosts, in order: hosts[0] is h1. disk: size of /srv on each, and of /tmp. seen: folders that are there on
    each like this tree and its build, wherever they lie."""

    def __init__(self, count, disk="1G", seconds=900, programs=BIN, seen=()):
        check(0 < count <= HOSTS_MAX, f"{count} hosts")
        self.disk = disk
        self.seen = [ROOT, os.path.dirname(os.path.realpath(programs)), *map(os.path.realpath, seen)]
        self.delay_program = os.environ.get("PIF_DELAY", os.path.join(programs, "..", "test", "hosts", "pif-delay"))
        self.env = {"PATH": "/mnt/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/srv/home"}
        self.env.update(TMPDIR="/tmp", LANG="C.UTF-8", PIF_RSH=NSRUN)
        self.refuse = None  # of an address and a command: what the remote shell says instead of running it
        self.world = self.doorkeeper = None
        self.all = []
        try:
            self.begin(count, seconds, programs)
        except BaseException:
            self.close()
            raise

    def begin(self, count, seconds, programs):
        self.world = Namespace(
            ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
            + ["sh", "-c", WORLD, "world", str(seconds), programs, *self.seen],
            stdin=subprocess.PIPE,
        )
        mnt = f"/proc/{self.world.pid}/root/mnt"
        shutil.copy(os.path.join(HERE, "nsrun"), mnt + "/nsrun")
        with open(mnt + "/hosts", "w", encoding="utf-8") as names:
            names.write("127.0.0.1 localhost\n::1 localhost\n")
            names.writelines(f"10.77.0.{i} h{i}\nfd77::{i:x} h{i}-six\n" for i in range(1, count + 1))
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.bind(mnt + "/door")
        os.chmod(mnt + "/door", 0o777)
        self.door.listen(128)
        self.doorkeeper = threading.Thread(target=self.serve, daemon=True)
        self.doorkeeper.start()
        for number in range(1, count + 1):
            self.all.append(Host(self, number))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def __getitem__(self, index):
        return self.all[index]

    def __iter__(self):
        return iter(self.all)

    def __len__(self):
        return len(self.all)

    def close(self):
        for host in self.all:
            host.close()
        if self.doorkeeper:
            # Woken up and gone before the next socket gets the number of this one.
            self.door.shutdown(socket.SHUT_RDWR)
            self.doorkeeper.join()
            self.door.close()
        if self.world:
            self.world.process.stdin.close()
            self.world.kill()

    def add(self):
        """One more host, and its number in their names."""
        number = len(self.all) + 1
        with open(f"/proc/{self.world.pid}/root/mnt/hosts", "a", encoding="utf-8") as names:
            names.write(f"10.77.0.{number} h{number}\nfd77::{number:x} h{number}-six\n")
        self.all.append(Host(self, number))
        return self.all[-1]

    # ---- the remote shell ----

    def serve(self):
        while True:
            try:
                connection, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def host_at(self, address):
        for host in self.all:
            if address in (host.name, host.address, host.address6, host.name + "-six"):
                return host
        return None

    def answer(self, connection):
        """One command: its words, with the streams of whoever asks."""
        with connection:
            fds = array.array("i")
            data, ancillary, _, _ = connection.recvmsg(FDS_BYTES, socket.CMSG_LEN(3 * fds.itemsize))
            for _, _, some in ancillary:
                fds.frombytes(some[: len(some) - len(some) % fds.itemsize])
            try:
                code = self.run_there(*data.decode().split("\0"), fds) if len(fds) == 3 else 255
            finally:
                for fd in fds:
                    os.close(fd)
            with contextlib.suppress(OSError):
                connection.send(str(code).encode())

    def run_there(self, address, command, fds):
        host = self.host_at(address)
        refusal = self.refuse(address, command) if self.refuse else None
        if not refusal and (host is None or host.power is None or not host.is_reachable):
            refusal = f"nsrun: connect to host {address} port 22: No route to host"
        if refusal:
            os.write(fds[2], refusal.encode() + b"\n")
            return 255
        process = host.start("sh", "-c", command, stdin=fds[0], stdout=fds[1], stderr=fds[2])
        code = process.wait()
        return code if code >= 0 else 128 - code


def text(data):
    return data.decode(errors="replace")


__all__ = ["BIN", "Failure", "Hosts", "NSRUN", "await_condition", "check", "text", "why_not"]
