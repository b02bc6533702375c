"""A file system of several hosts on this machine: each has a folder, a key pair and a loopback address of its own."""

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

from pif_system import BIN, Running, await_condition, check, end_of, files_below, private_environment, run_pif


def curve_pair():
    """A new pair, (public, secret) in Z85."""
    zmq = ctypes.CDLL("libzmq.so.5")
    public, secret = ctypes.create_string_buffer(41), ctypes.create_string_buffer(41)
    check(zmq.zmq_curve_keypair(public, secret) == 0, "this ZeroMQ has CURVE")
    return public.value.decode(), secret.value.decode()


def write(path, text, mode):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)


class SeveralHosts(Running):
    """`with SeveralHosts(["h1", "h2"]) as fs:` has running daemons; the server is on the first host. No command of
    `pif` makes it: only what daemons and clients do with a folder is tried."""

    def __init__(self, hosts, lfss_per_host=1, tcp_base=7400):
        self.hosts = hosts
        self.temp = tempfile.mkdtemp(prefix="pif-hosts-")
        self.running = {}  # (host, daemon): process
        net = f"127.{random.randrange(64, 128)}.{random.randrange(256)}"
        self.address = {host: f"{net}.{2 + i}" for i, host in enumerate(hosts)}
        self.lfss = [
            (f"lfs{i}", hosts[i // lfss_per_host], tcp_base + 1 + i) for i in range(len(hosts) * lfss_per_host)
        ]
        self.server_port = tcp_base
        self.env = private_environment(self.temp)

    def folder(self, host):
        return os.path.join(self.temp, host, "pif")

    def bytes_of(self, host, name):
        """A file of the host's folder; nothing if it is not there."""
        try:
            with open(os.path.join(self.folder(host), name), "rb") as file:
                return file.read()
        except OSError:
            return b""

    # ---- making ----

    def description(self, stage, edition=1):
        text = (
            'format = 3\nid = "00c0ffee00c0ffee"\nbevy = 0\ntcp = "curve"\n'
            f'directory = "{"d" * 32}"\nstage = "{stage}"\nedition = {edition}\nworker-ports = "any"\n'
        )
        for host in self.hosts:
            text += f'[[host]]\nname = "{host}"\naddress = "{self.address[host]}"\nfolder = "{self.folder(host)}"\n'
        text += f'[[server]]\nid = 1\nhost = "{self.hosts[0]}"\nport = {self.server_port}\n'
        for number, (name, host, port) in enumerate(self.lfss, 1):
            text += (
                f'[[lfs]]\nid = {number}\nname = "{name}"\nroot = "{name}"\nuuid = "{number:032x}"\n'
                f'host = "{host}"\nport = {port}\n'
            )
        return text

    def describe(self, stage, edition=1, hosts=None):
        for host in hosts or self.hosts:
            write(os.path.join(self.folder(host), "pif.toml"), self.description(stage, edition), 0o644)

    def make(self):
        cluster_key = bytes(random.randrange(256) for _ in range(32))
        owner = f"{os.geteuid()} {os.getegid()}"
        pairs = {host: curve_pair() for host in self.hosts}
        client = curve_pair()
        for host in self.hosts:
            keys = os.path.join(self.folder(host), "keys")
            os.makedirs(os.path.join(keys, "clients"))
            os.makedirs(os.path.join(keys, "hosts"))
            os.chmod(keys, 0o711)
            with open(os.path.join(keys, "cluster.key"), "wb") as file:
                file.write(cluster_key)
            os.chmod(os.path.join(keys, "cluster.key"), 0o400)
            for name, pair in (("host", pairs[host]), ("client", client)):
                write(os.path.join(keys, name + ".curve"), f"public {pair[0]}\nsecret {pair[1]}\n", 0o400)
            write(os.path.join(keys, "clients/client.pub"), f"{client[0]} {owner}\n", 0o400)
            for other in self.hosts:
                write(os.path.join(keys, f"hosts/{other}.pub"), f"{pairs[other][0]} {owner}\n", 0o444)
            write(os.path.join(self.folder(host), "host"), host + "\n", 0o644)
        self.describe("new")
        self.daemon_program("pif-server", "init", self.folder(self.hosts[0]))
        for name, host, _ in self.lfss:
            self.daemon_program("pif-lfs", "init", "--cluster", self.folder(host), name)
        self.describe("ready")

    def daemon_program(self, program, *words):
        done = subprocess.run(
            [os.path.join(BIN, program), *words], env=self.env, stderr=subprocess.PIPE, timeout=60, check=False
        )
        check(done.returncode == 0, f"{program} {' '.join(words)}: {done.stderr.decode(errors='replace')}")

    # ---- daemons ----

    def log_path(self, host, daemon):
        return os.path.join(self.temp, host, daemon + ".log")

    def log(self, host, daemon):
        with open(self.log_path(host, daemon), errors="replace") as file:
            return file.read()

    def start(self, host, daemon):
        folder = self.folder(host)
        words = ["pif-server", "run", folder] if daemon == "server" else ["pif-lfs", "run", "--cluster", folder, daemon]
        with open(self.log_path(host, daemon), "ab") as log:
            self.running[host, daemon] = subprocess.Popen(
                [os.path.join(BIN, words[0]), *words[1:]],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self, host, daemon, how=signal.SIGTERM):
        process = self.running.pop((host, daemon))
        process.send_signal(how)
        process.wait(30)

    def start_all(self):
        self.start(self.hosts[0], "server")
        for name, host, _ in self.lfss:
            self.start(host, name)

    def await_up(self, count=None, host=None):
        wanted = len(self.lfss) if count is None else count
        await_condition(lambda: self.up(host) == wanted, f"{wanted} LFSs are up", 30)

    def up(self, host=None):
        done = self.run(host or self.hosts[0], "node", "list", "--json")
        return sum(node["state"] == "up" for node in json.loads(done.stdout)["nodes"]) if done.returncode == 0 else 0

    # ---- commands ----

    def run(self, host, *words, **options):
        """A command of a user who is on that host."""
        return run_pif(dict(self.env, PIF=self.folder(host)), *words, **options)

    def stored_files(self, lfs):
        """Files of rows on its disk."""
        host = next(host for name, host, _ in self.lfss if name == lfs)
        return files_below(os.path.join(self.folder(host), lfs, "data"), ".dat")

    # ---- with ----

    def begin(self):
        self.make()
        self.start_all()
        self.await_up()

    def close(self):
        failed = sys.exc_info()[0] is not None
        for (host, daemon), process in self.running.items():
            process.terminate()
        for (host, daemon), process in self.running.items():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if failed:
                lines = end_of(self.log_path(host, daemon), 15)
                print(f"--- end of {daemon}.log on {host}", *lines, sep="\n", file=sys.stderr)
        shutil.rmtree(self.temp, ignore_errors=True)
