/* The system calls that workers are refused. A list of what is forbidden, not of what is allowed: tools are any
 * program, in any language. What is here reaches past the process: other processes, the kernel's configuration, new
 * namespaces, or ways around the rules for files. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "confine.h"

#if defined(__x86_64__)
#define PIF_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define PIF_ARCH AUDIT_ARCH_AARCH64
#endif

#ifndef PIF_ARCH

int confine_calls(int landlock, const char** what) {
  (void)landlock;
  (void)what;
  return 0;
}

#else

enum { kStatementsMax = 256, kNewNamespaces = 0x7e020000 /* CLONE_NEW* */ };

static const int kForbidden[] = {
    /* leaving the process group, by which an LFS ends a job with all its children */
    SYS_setsid, SYS_setpgid,
    /* namespaces and mounts */
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree,
    SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
    /* ways to files and calls that these rules do not see */
    SYS_open_by_handle_at, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_pidfd_getfd,
    /* owners, modes and attributes, which Landlock does not guard: of the store too, if an LFS runs as the worker's
       user */
    SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr,
    SYS_lremovexattr, SYS_fremovexattr,
#ifdef SYS_chmod
    SYS_chmod, SYS_chown, SYS_lchown,
#endif
    452, /* fchmodat2 */
    /* the kernel */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_syslog,
    SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
    SYS_quotactl};

/* Where Landlock does not guard other processes' memory. */
static const int kForbiddenWithoutLandlock[] = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev};

struct program {
  struct sock_filter statements[kStatementsMax];
  unsigned short count;
};

static void add(struct program* p, unsigned short code, unsigned char yes, unsigned char no, unsigned k) {
  const struct sock_filter statement = {code, yes, no, k};
  p->statements[p->count++] = statement;
}

static void load(struct program* p, size_t offset) { add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned)offset); }
static void load_call(struct program* p) { load(p, offsetof(struct seccomp_data, nr)); }
/* The low half of an argument; the machines above are little-endian. */
static void load_argument(struct program* p, unsigned i) {
  load(p, offsetof(struct seccomp_data, args) + i * sizeof(unsigned long long));
}
static void answer(struct program* p, unsigned error) {
  add(p, BPF_RET | BPF_K, 0, 0, error == 0 ? (unsigned)SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | error);
}

static void forbid(struct program* p, int call, unsigned error) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)call);
  answer(p, error);
}

/* Another machine's calls have other numbers: none of them. */
static void check_machine(struct program* p) {
  load(p, offsetof(struct seccomp_data, arch));
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, PIF_ARCH);
  add(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
  load_call(p);
#if defined(__x86_64__)
  add(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* the x32 numbers */
  answer(p, EPERM);
#endif
}

static void forbid_namespaces(struct program* p) {
  forbid(p, SYS_clone3, ENOSYS); /* its flags cannot be seen; then the C library uses clone */
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone);
  load_argument(p, 0);
  add(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, (unsigned)kNewNamespaces);
  answer(p, EPERM);
  answer(p, 0);
}

/* Of other processes of the same user, the LFS among them. */
static void forbid_foreign_limits(struct program* p) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_prlimit64);
  load_argument(p, 0);
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0);
  answer(p, EPERM);
  answer(p, 0);
}

static void forbid_raw_sockets(struct program* p) {
  static const unsigned families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
  enum { kFamilies = sizeof families / sizeof *families };
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, kFamilies + 3, SYS_socket);
  load_argument(p, 0);
  for (unsigned char i = 0; i < kFamilies; ++i)
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (unsigned char)(kFamilies - i), 0, families[i]);
  answer(p, EAFNOSUPPORT);
  answer(p, 0);
}

int confine_calls(int landlock, const char** what) {
  struct program p = {.count = 0};
  check_machine(&p);
  for (size_t i = 0; i < sizeof kForbidden / sizeof *kForbidden; ++i) forbid(&p, kForbidden[i], EPERM);
  for (size_t i = 0; landlock == 0 && i < sizeof kForbiddenWithoutLandlock / sizeof *kForbiddenWithoutLandlock; ++i)
    forbid(&p, kForbiddenWithoutLandlock[i], EPERM);
  forbid_namespaces(&p);
  forbid_foreign_limits(&p);
  forbid_raw_sockets(&p);
  answer(&p, 0);
  const struct sock_fprog all = {p.count, p.statements};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0 || errno == EINVAL)
    return 0; /* EINVAL: not built in */
  *what = "cannot forbid system calls";
  return -1;
}

#endif
