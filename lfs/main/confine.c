#define _GNU_SOURCE
#include "confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kFilesMax = 4096, kProcessesMax = 4096, kBesideMax = 1024 };

/* Whose programs and libraries every worker may run. */
static const char* const kSystemFolders[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"};

/* Files and folders that programs and libraries read, whatever they are. Of /etc these alone: much else there is secret
 * (shadow, ssl/private, ssh, sudoers), and readable to root even without root's powers, because root owns it. */
static const char* const kReadable[] = {
    /* the loader and the C library: libraries, users, hosts and services, time and language */
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/nsswitch.conf",
    "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf",
    "/etc/networks", "/etc/services", "/etc/protocols", "/etc/rpc", "/etc/ethertypes", "/etc/localtime",
    "/etc/timezone", "/etc/locale.conf", "/etc/locale.alias", "/etc/default/locale",
    /* which system it is */
    "/etc/os-release", "/etc/debian_version", "/etc/redhat-release", "/etc/alternatives",
    /* certificates and what OpenSSL does by default, but no private keys */
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust/extracted", "/etc/crypto-policies",
    "/etc/gcrypt",
    /* languages and libraries */
    "/etc/python3", "/etc/python3.9", "/etc/python3.10", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13",
    "/etc/python3.14", "/etc/perl", "/etc/R", "/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk",
    "/etc/java-25-openjdk", "/etc/java", "/etc/fonts", "/etc/OpenCL", "/etc/glvnd", "/etc/mime.types", "/etc/magic",
    "/etc/terminfo", "/etc/inputrc", "/etc/shells",
    /* the kernel: this process and the machine's cores and memory */
    "/proc", "/sys/devices/system", "/sys/fs/cgroup", "/dev/urandom", "/dev/random", "/dev/zero"};

static int failed(const char** what, const char* text) {
  *what = text;
  return -1;
}

/* ---- resources ---- */

static int bound(int which, rlim_t most) {
  struct rlimit limit;
  if (getrlimit(which, &limit) != 0) return -1;
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most) limit.rlim_max = most;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(which, &limit);
}

/* Half of the machine's memory for one process: its address space may be larger, what it can write to may not. */
static rlim_t memory_max(void) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  const rlim_t least = (rlim_t)1 << 28;
  if (pages <= 0 || page <= 0) return (rlim_t)1 << 32;
  const rlim_t half = (rlim_t)pages * (rlim_t)page / 2;
  return half > least ? half : least;
}

/* The kernel kills workers before daemons. Best effort: /proc may not be there. */
static void go_first(void) {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "1000", 4) != 4) errno = 0;
  close(fd);
}

/* Root's tools work on descriptors too: none of root's powers is needed. Without them in the bounding set, exec gives
 * none back. */
static int drop_capabilities(void) {
  if (geteuid() != 0) return 0;
  for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; ++i)
    if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0) return -1;
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
  return (int)syscall(SYS_capset, &header, none);
}

int confine_resources(int any_memory, const char** what) {
  if (bound(RLIMIT_CORE, 0) != 0 || bound(RLIMIT_NOFILE, kFilesMax) != 0)
    return failed(what, "cannot bound descriptors");
  if (bound(RLIMIT_NPROC, kProcessesMax) != 0) return failed(what, "cannot bound processes");
#ifdef PIF_SANITIZED
  any_memory = 1;
#endif
  /* a sanitizer's shadow memory is larger than any machine */
  if (!any_memory && bound(RLIMIT_DATA, memory_max()) != 0) return failed(what, "cannot bound memory");
  go_first();
  if (drop_capabilities() != 0) return failed(what, "cannot give up root's powers");
  return 0;
}

/* ---- Landlock: constants of the kernel's interface, which the system's headers may be too old for ---- */

struct ruleset {
  uint64_t files;   /* version 1 */
  uint64_t network; /* 4 */
  uint64_t scoped;  /* 6 */
};
struct beneath {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));

enum {
  kExecute = 1 << 0,
  kWriteFile = 1 << 1,
  kReadFile = 1 << 2,
  kReadFolder = 1 << 3,
  kAllVersion1 = (1 << 13) - 1,
  kRefer = 1 << 13,    /* version 2 */
  kTruncate = 1 << 14, /* 3 */
  kDevices = 1 << 15,  /* 5 */
  kReadAll = kReadFile | kReadFolder,
  kRunAll = kReadAll | kExecute
};
enum { kScopeAbstractSockets = 1, kScopeSignals = 2 };

static uint64_t handled(int version) {
  uint64_t rights = kAllVersion1;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kDevices;
  return rights;
}

/* What is not there needs no rule. */
static int allow_fd(int rules, int fd, uint64_t rights) {
  const struct beneath rule = {rights, fd};
  const int done = (int)syscall(SYS_landlock_add_rule, rules, 1, &rule, 0);
  const int error = errno;
  close(fd);
  errno = error;
  return done;
}

static int allow(int rules, const char* path, uint64_t rights) {
  const int fd = open(path, O_PATH | O_CLOEXEC);
  return fd < 0 ? 0 : allow_fd(rules, fd, rights);
}

static int allow_program(int rules, const char* path, int program) {
  if (program < 0) return allow(rules, path, kReadFile | kExecute);
  const int copy = fcntl(program, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? -1 : allow_fd(rules, copy, kReadFile | kExecute);
}

static int allow_system(int rules, int version) {
  const uint64_t writing = kReadFile | kWriteFile | (version >= 3 ? (uint64_t)kTruncate : 0);
  for (size_t i = 0; i < sizeof kSystemFolders / sizeof *kSystemFolders; ++i)
    if (allow(rules, kSystemFolders[i], kRunAll) != 0) return -1;
  for (size_t i = 0; i < sizeof kReadable / sizeof *kReadable; ++i) {
    struct stat is;
    if (stat(kReadable[i], &is) != 0) continue;
    if (allow(rules, kReadable[i], S_ISDIR(is.st_mode) ? kReadAll : kReadFile) != 0) return -1;
  }
  return allow(rules, "/dev/null", writing);
}

/* Whether it is in one of kSystemFolders, and so allowed already. */
static int is_of_system(const char* folder) {
  char real[PATH_MAX];
  if (realpath(folder, real) == NULL) return 0;
  for (size_t i = 0; i < sizeof kSystemFolders / sizeof *kSystemFolders; ++i) {
    const size_t length = strlen(kSystemFolders[i]);
    if (strncmp(real, kSystemFolders[i], length) == 0 && (real[length] == '/' || real[length] == '\0')) return 1;
  }
  return 0;
}

/* Whether it is a folder, or another name of one that the folder has, too. */
static int needs_no_rule(int folder, const struct dirent* entry) {
  char target[NAME_MAX + 1];
  if (entry->d_type != DT_LNK) return entry->d_type == DT_DIR;
  const ssize_t length = readlinkat(folder, entry->d_name, target, sizeof target);
  return length > 0 && memchr(target, '/', (size_t)length) == NULL;
}

/* The files of the program's folder, but no folder in it: a file system may lie there, with its keys. */
static int allow_beside(int rules, const char* program) {
  if (program == NULL) return 0;
  char folder[4096];
  const char* slash = strrchr(program, '/');
  if (slash == NULL || (size_t)(slash - program) >= sizeof folder) return 0;
  memcpy(folder, program, (size_t)(slash - program));
  folder[slash - program] = '\0';
  if (is_of_system(folder)) return 0;
  DIR* all = opendir(folder[0] == '\0' ? "/" : folder);
  if (all == NULL) return 0;
  int done = 0;
  const struct dirent* one;
  for (int count = 0; done == 0 && count < kBesideMax && (one = readdir(all)) != NULL; ++count) {
    if (needs_no_rule(dirfd(all), one)) continue;
    const int fd = openat(dirfd(all), one->d_name, O_PATH | O_CLOEXEC);
    struct stat is;
    if (fd < 0) continue;
    if (fstat(fd, &is) == 0 && S_ISREG(is.st_mode))
      done = allow_fd(rules, fd, kReadFile | kExecute);
    else
      close(fd);
  }
  closedir(all);
  return done;
}

static int allow_grants(int rules, struct grants* grants, uint64_t writing) {
  for (size_t i = 0; i < grants->count; ++i) {
    const int folder = grants->each[i].folder;
    grants->each[i].folder = -1;
    if (allow_fd(rules, folder, grants->each[i].may_write ? writing : kRunAll) != 0) return -1;
  }
  return 0;
}

int confine_files(const char* path, int program, const char* own, struct grants* grants, int* version,
                  const char** what) {
  *version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
  if (*version < 1) {
    *version = 0;
    return 0;
  }
  struct ruleset wanted = {handled(*version), 0, 0};
  if (*version >= 6) wanted.scoped = kScopeAbstractSockets | kScopeSignals;
  const size_t known = *version >= 6 ? sizeof wanted : sizeof wanted.files;
  const int rules = (int)syscall(SYS_landlock_create_ruleset, &wanted, known, 0);
  if (rules < 0) return failed(what, "cannot make rules for files");
  const uint64_t everything = wanted.files & ~(uint64_t)(kExecute | kDevices);
  if (allow_system(rules, *version) != 0 || allow_program(rules, path, program) != 0 ||
      allow_beside(rules, path) != 0 || allow_grants(rules, grants, everything) != 0 ||
      (strcmp(own, "-") != 0 && allow(rules, own, everything) != 0))
    return failed(what, "cannot add a rule for files");
  if (syscall(SYS_landlock_restrict_self, rules, 0) != 0) return failed(what, "cannot apply the rules for files");
  close(rules);
  return 0;
}
