"""A file system whose daemons are the test's own children, with clients at work in it, and what must hold of it."""

import json
import os
import random
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import actors
import daemons
import oracle
from pif_system import await_condition, check

LEASE_SECONDS = 630  # of a capability, and some skew of clocks
LOG_RECORDS_MAX = 400
BATCH = 8
ANSWER_SECONDS = 90.0


def is_of(seen, tags):
    """Whether it is one of the files of these puts."""
    return any(run[0] in tags for run in seen[1])


class System:
    def __init__(self, options, make_disks=None):
        self.options = options
        self.bevy = options.lfs // 2 if options.bevies else 0
        self.rng = random.Random(options.seed)
        self.temp = tempfile.mkdtemp(prefix="pif-crash-", dir=options.where)
        self.folder = os.path.join(self.temp, "fs")
        self.env = dict(os.environ, PIF=self.folder, HOME=self.temp, XDG_CONFIG_HOME=os.path.join(self.temp, "config"))
        self.numbers = 0
        self.daemons = {}
        self.clients = []
        self.disks = {}
        self.log = None
        self.dumper = None
        self.copier = actors.Copier(os.path.join(options.bin, "pif-copy"), self.env, self.rng)
        self.make_disks = make_disks

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *ignored):
        self.close()
        if os.path.exists(self.temp):
            print(f"kept: {self.temp}")

    # ---- making and ending ----

    def make(self):
        bevies = ["--bevy", str(self.bevy)] if self.bevy else []
        self.pif("init", "-n", str(self.options.lfs), *bevies, self.folder)
        names = ["server"] + [f"lfs{i}" for i in range(self.options.lfs)]
        if self.make_disks:
            self.disks = self.make_disks(self.temp, self.folder, names)
        self.make_folders(names)
        os.mkdir(os.path.join(self.temp, "logs"))
        for name in names:
            words = ["pif-server", "run", self.folder] if name == "server" else ["pif-lfs", self.folder, name]
            words[0] = os.path.join(self.options.bin, words[0])
            self.daemons[name] = daemons.Daemon(
                name, words, os.path.join(self.folder, "run", name + ".sock"), os.path.join(self.temp, "logs", name)
            )
            self.daemons[name].spawn()
        for daemon in self.daemons.values():
            check(daemon.await_serving() is not None, f"{daemon.name} serves")
        self.pif("status", "--json")
        await_condition(lambda: self.nodes_up() == self.options.lfs, "all LFSs are up", 10)
        self.make_clients()

    def make_folders(self, names):
        """As the first `pif up` does, on the disks that are mounted now."""
        for name in names:
            words = (
                ["pif-server", "init", self.folder]
                if name == "server"
                else ["pif-lfs", "init", "--cluster", self.folder, name]
            )
            subprocess.run(
                [os.path.join(self.options.bin, words[0]), *words[1:]], check=True, stdout=subprocess.DEVNULL
            )
        path = os.path.join(self.folder, "pif.toml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('stage = "new"', 'stage = "ready"'))

    def nodes_up(self):
        return sum(node["state"] == "up" for node in json.loads(self.pif("status", "--json"))["nodes"])

    def make_clients(self):
        helper = [self.options.client, self.folder]
        self.dumper = actors.Client("dumper", helper, self.env, self.rng)
        self.dumper.start()
        ways = actors.FAST_WAYS if self.options.quick else actors.WAYS
        self.clients = [
            actors.Client(name, helper, self.env, self.rng, ways, self.bevy > 0) for name in ("a", "b")
        ]
        for client in self.clients:
            client.start()
            self.request(f"mkdir {client.folder}")
        self.request("mkdir /copies")
        self.request("mkdir /log")
        self.renew_origin()
        self.renew_log()

    def close(self):
        for client in [self.dumper, *self.clients]:
            if client and client.process and client.process.poll() is None:
                client.process.kill()
                client.process.wait()
        if self.copier.is_busy():
            self.copier.process.kill()
            self.copier.process.wait()
        for name, daemon in self.daemons.items():
            daemon.kill()
            if pid := daemons.holder_of(os.path.join(self.folder, name)):  # started by `pif node replace`
                daemons.kill_process(pid)
        for disk in self.disks.values():
            disk.close()
        if not (self.options.keep and os.path.exists(os.path.join(self.temp, "failed"))):
            shutil.rmtree(self.temp, ignore_errors=True)

    # ---- asking ----

    def run(self, *words):
        return subprocess.run(
            [os.path.join(self.options.bin, "pif"), *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )

    def start_pif(self, *words):
        """A command that runs beside others."""
        return subprocess.Popen(
            [os.path.join(self.options.bin, "pif"), *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def pif(self, *words, codes=(0,)):
        done = self.run(*words)
        check(
            done.returncode in codes,
            f"pif {' '.join(words)}: exit {done.returncode}: {done.stderr} {done.stdout[:2000]}",
        )
        return done.stdout

    def next_number(self):
        self.numbers += 1
        return self.numbers

    def request(self, line, number=None):
        """Of the client that looks on; whether it was done."""
        before = self.dumper.acknowledged
        self.dumper.lines = []
        self.dumper.ask([(number or self.next_number(), ("dump",), line)])
        self.pump(lambda: not self.dumper.is_busy(), ANSWER_SECONDS, [self.dumper])
        return self.dumper.acknowledged > before

    def must(self, line, number=None):
        """Where everybody is up. With bevies who takes part may just be changing: then it is done again."""

        def do():
            return self.request(line, number)

        done = await_condition(do, line, ANSWER_SECONDS) if self.bevy else do()
        check(done, f"{line}: {dict(self.dumper.failures)}")

    def renew_origin(self):
        number = self.next_number()
        length, records = self.rng.choice([(984, 700), (5000, 60), (0, 500)])
        operation = ("put", "/copies/origin", number, length, records)
        self.must(f"put /copies/origin {number} {length} {records} 0", number)
        self.copier.oracle.acknowledged(operation)

    def renew_log(self):
        if self.log:
            self.must(f"remove {self.log[0]}")
        number = self.next_number()
        self.log = (f"/log/{number}", oracle.LogOracle(number, self.bevy > 0))
        self.must(f"put {self.log[0]} {number} {self.rng.choice([40, 984, 0])} 0 0")

    def pump(self, done, seconds, clients=None):
        """Takes answers until done() or the time is over; whether done()."""
        clients = self.clients if clients is None else clients
        deadline = time.monotonic() + seconds
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            ready, _, _ = select.select([c for c in clients if c.is_busy()], [], [], min(left, 0.002))
            for client in ready:
                client.read_all()
        return True

    def busy(self):
        return any(client.is_busy() for client in self.clients) or self.copier.is_busy()

    def feed(self):
        for client in self.clients:
            client.ask(client.batch(BATCH, self.next_number, self.log))

    def under_way(self):
        """Kinds of the operations that are being done now."""
        kinds = [client.under_way[0][1][0] for client in self.clients if client.under_way]
        return kinds + (["copy"] if self.copier.is_busy() else [])

    # ---- what must hold ----

    def verify(self):
        check(self.pump(lambda: not self.busy(), ANSWER_SECONDS), f"still under way: {self.under_way()}")
        self.copier.finish()
        await_condition(lambda: self.request("dump /"), "everything can be read", ANSWER_SECONDS)
        files, folders = actors.parse_dump(self.dumper.lines)
        check(folders == {"/a", "/b", "/copies", "/log"}, f"folders are {sorted(folders)}")
        owners = [*self.clients, self.copier]
        for owner in owners:
            mine = {path: seen for path, seen in files.items() if path.startswith(owner.folder + "/")}
            for path in [path for path, seen in mine.items() if is_of(seen, getattr(owner, "strange", ()))]:
                self.must(f"remove {path}")
                del mine[path], files[path]
            owner.oracle.observe(owner.folder, mine)
        logs = {path for path in files if path.startswith("/log/")}
        check(logs == {self.log[0]}, f"logs are {sorted(logs)}")
        self.log[1].observe(self.log[0], files[self.log[0]][1])
        check(len(files) == 1 + sum(len(owner.oracle.latest()) for owner in owners), "files of nobody")
        if self.log[1].records() > LOG_RECORDS_MAX or (self.log[1].had_doubts and self.rng.random() < 0.9):
            self.renew_log()

    def fsck(self):
        """LFSs report themselves to a server that was started again, but not at once; and a machine may be busy."""
        report = await_condition(self.try_fsck, "fsck reaches all", ANSWER_SECONDS)
        check(report["damages"] == 0, f"fsck: {report['findings'][:5]}")
        return report

    def try_fsck(self):
        done = self.run("fsck", "--json")
        report = json.loads(done.stdout)
        if done.returncode == 3 and report["error"]["code"] in ("unavailable", "timed-out"):
            return None
        check(done.returncode in (0, 1), f"fsck: exit {done.returncode}: {done.stderr}")
        return report

    def view_states(self):
        """{LFS: member, lost, rebuilding or returning}"""
        document = await_condition(self.try_status, "the server answers", ANSWER_SECONDS)
        return {node["name"]: node["view_state"] for node in document["nodes"]}

    def try_status(self):
        done = self.run("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def await_whole(self):
        """With bevies: all LFSs are members, and a scrub of all finds nothing."""
        await_condition(lambda: set(self.view_states().values()) == {"member"}, "all LFSs are members", ANSWER_SECONDS)
        begin, pause = time.monotonic(), threading.Event()
        while lacks := self.end_scrub(self.start_pif("scrub", "--json")):
            check(time.monotonic() - begin < ANSWER_SECONDS, f"not all is scrubbed: {lacks}")
            pause.wait(0.2)

    def end_scrub(self, process):
        """What it has not looked at. There is no rot: it must not find anything."""
        out, err = process.communicate(timeout=ANSWER_SECONDS)
        check(process.returncode in (0, 1, 3), f"pif scrub: exit {process.returncode}: {out} {err}")
        document = json.loads(out)
        if "nodes" not in document:
            return [document]
        nodes = document["nodes"]
        damages = [f"{node['node']}: {damage}" for node in nodes for damage in node["damages"]]
        without_power = ("Input/output error", "MDB_PANIC")  # a store says the latter from then on
        others = [damage for damage in damages if not any(text in damage for text in without_power)]
        found = sum(node["found"] for node in nodes)
        check(not others and found == len(damages), f"pif scrub found {found}: {others[:5]}")
        lacks = [(node["node"], node["error"] or node["damages"], node["not_compared"]) for node in nodes]
        return [lack for lack in lacks if lack[1] or lack[2]]

    def await_settled(self, seconds=LEASE_SECONDS + 60):
        """A removed file that a killed client had open stays, if the server died too, until the client's lease is
        over."""
        report = {}

        def settled():
            report.update(self.fsck())
            put_aside = sum(finding["kind"] == "quarantined" for finding in report["findings"])  # for a day
            return report["leftovers"] - put_aside + report["pending"] + report["doomed"] == 0

        begin, next_word = time.monotonic(), 5
        pause = threading.Event()
        while not settled():
            waited = int(time.monotonic() - begin)
            check(waited < seconds, f"after {seconds} s still pending, doomed or left over: {report}")
            if waited >= next_word:
                next_word += 60
                print(
                    f"waiting for the leases of killed clients: {waited} s, at most {seconds} s"
                    f" ({report['pending']} files of theirs unfinished,"
                    f" {report['doomed']} removed, {report['leftovers']} leftovers)",
                    flush=True,
                )
            pause.wait(min(1, waited + 0.01))

    def stop(self):
        """Everything ends as asked, and each part is whole on its own."""
        for client in [*self.clients, self.dumper]:
            client.stop()
        for daemon in self.daemons.values():
            daemon.process.send_signal(signal.SIGTERM)
        for daemon in self.daemons.values():
            check(daemon.process.wait(20) == 0, f"{daemon.name} ended with {daemon.process.returncode}")
        checks = [["pif-server", "check", self.folder]]
        lfss = [name for name in self.daemons if name != "server"]
        checks += [["pif-lfs", "check", "--sums", os.path.join(self.folder, name)] for name in lfss]
        for program, *words in checks:
            done = subprocess.run(
                [os.path.join(self.options.bin, program), *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=ANSWER_SECONDS,
                check=False,
            )
            check(done.returncode == 0, f"{program} {' '.join(words)}: {done.stdout.decode(errors='replace')}")
