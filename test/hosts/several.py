"""A file system of several hosts of the tests' own (hosts.py), made and started by `pif` on the first one."""

import time

from hosts import Failure, Hosts, await_condition, check, text, why_not  # isort: skip
from pif_system import Running, check_failure  # isort: skip

FOLDER = "/srv/pif-fs"  # not where a clone may lie, which hosts see, too


def timed(function, *arguments, **options):
    """Seconds that it took, and what it returned."""
    begin = time.monotonic()
    value = function(*arguments, **options)
    return time.monotonic() - begin, value


class System(Running):
    """`with System(3) as fs:` has a running file system on h1, h2 and h3, the server and lfs0 on h1; clients: so many
    more hosts without an LFS."""

    def __init__(self, count, lfss_per_host=1, clients=0, folder=FOLDER, init_options=(), **hosts_options):
        self.folder = folder
        self.hosts = Hosts(count + clients, **hosts_options)
        self.hosts.env["PIF"] = folder
        self.names = [host.name for host in self.hosts]
        self.init_words = ["init", "--hosts", ",".join(self.names[:count]), "--lfs-per-host", str(lfss_per_host)]
        if clients:
            self.init_words += ["--client-hosts", ",".join(self.names[count:])]
        self.init_words += [*init_options, folder]

    def begin(self):
        self.ok("h1", *self.init_words)
        self.ok("h1", "up", self.folder)

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.show_logs()
        self.close()

    def close(self):
        self.hosts.close()

    def show_logs(self):
        for host in self.hosts:
            if host.power is not None:
                line = f"cd {self.folder} && tail -n 12 server/server.log lfs*/*.log 2>/dev/null"
                print(f"--- logs of {host.name}", text(host.run("sh", "-c", line).stdout), sep="\n")

    def host(self, name):
        return self.hosts[self.names.index(name)]

    # ---- commands ----

    def run(self, host, *words, **options):
        return self.host(host).run("pif", *words, **options)

    def fails(self, host, code, pattern, *words, lines=1, **options):
        """A command that must fail like this: exit code, and so many lines on stderr, one of which matches."""
        check_failure(self.run(host, *words, **options), words, code, pattern, lines)

    # ---- what must hold ----

    def states(self, host="h1"):
        return {node["name"]: node["state"] for node in self.json(host, "status")["nodes"]}

    def await_up(self, host="h1", seconds=30):
        await_condition(lambda: set(self.states(host).values()) == {"up"}, "all LFSs are up", seconds)

    def await_clean(self, host="h1", seconds=60, pending=True):
        return self.await_settled(host, seconds=seconds, pending=pending)

    def components(self):
        """Files of rows on all hosts."""
        line = f"find {self.folder}/lfs*/data -name '*.dat' 2>/dev/null | wc -l"
        return sum(int(host.ok("sh", "-c", line)) for host in self.hosts if host.power is not None)

    def await_daemons(self, **wanted):
        """h1="server lfs" and so on: what runs there. Who has let go of his lock is seen a moment longer."""
        programs = {"server": "pif-server", "lfs": "pif-lfs"}
        lists = {host: sorted(programs[word] for word in words.split()) for host, words in wanted.items()}

        def are_so():
            found = self.daemons()
            return all(found[host] == names for host, names in lists.items())

        await_condition(are_so, f"daemons are {wanted}", 20)

    def daemons(self):
        return {host.name: host.processes("pif-server", "pif-lfs") for host in self.hosts if host.power is not None}


__all__ = ["FOLDER", "Failure", "System", "await_condition", "check", "text", "timed", "why_not"]
