/* Which system calls workers are refused: this program runs when pif-exec is built, and writes the rules as
 * libseccomp's filters for the kernel, in C. So a worker's start costs no more than to hand them over, and pif-exec
 * stays small.
 *
 * A list of what is forbidden, not of what is allowed: tools are any program, in any language. What is here reaches
 * past the process: other processes, the kernel's configuration, new namespaces, or ways around the rules for files. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const int kForbidden[] = {
    /* leaving the process group, by which an LFS ends a job with all its children */
    SCMP_SYS(setsid), SCMP_SYS(setpgid),
    /* namespaces and mounts */
    SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot),
    SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount),
    SCMP_SYS(fspick), SCMP_SYS(mount_setattr),
    /* ways to files and calls that these rules do not see */
    SCMP_SYS(open_by_handle_at), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    SCMP_SYS(pidfd_getfd),
    /* owners, modes and attributes, which Landlock does not guard: of the store too, if an LFS runs as the worker's
     * user */
    SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), 452 /* fchmodat2, on every machine */, SCMP_SYS(chown),
    SCMP_SYS(fchown), SCMP_SYS(lchown), SCMP_SYS(fchownat), SCMP_SYS(setxattr), SCMP_SYS(lsetxattr),
    SCMP_SYS(fsetxattr), SCMP_SYS(removexattr), SCMP_SYS(lremovexattr), SCMP_SYS(fremovexattr),
    /* the kernel */
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(add_key), SCMP_SYS(request_key),
    SCMP_SYS(keyctl), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load),
    SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(syslog), SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(adjtimex),
    SCMP_SYS(clock_adjtime), SCMP_SYS(quotactl)};

/* Where Landlock does not guard other processes' memory. */
static const int kForbiddenWithoutLandlock[] = {SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv),
                                                SCMP_SYS(process_vm_writev)};

static const int kNamespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                  CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

/* In ascending order. */
static const unsigned kAllowedSockets[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void must(int result, const char* what) {
  if (result >= 0) return;
  fprintf(stderr, "confine_rules: %s: %s\n", what, strerror(-result));
  exit(1);
}

static scmp_filter_ctx new_filter(uint32_t other_machines) {
  const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == NULL) must(-ENOMEM, "cannot make a filter");
  must(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, other_machines), "cannot forbid other machines' calls");
  return filter;
}

/* A call that this machine does not have (chmod on ARM) has a negative number. */
static void forbid(scmp_filter_ctx filter, int call, uint32_t error) {
  if (call >= 0) must(seccomp_rule_add_exact(filter, SCMP_ACT_ERRNO(error), call, 0), "cannot forbid a call");
}

static void forbid_where(scmp_filter_ctx filter, int call, uint32_t error, struct scmp_arg_cmp argument) {
  must(seccomp_rule_add_exact(filter, SCMP_ACT_ERRNO(error), call, 1, argument), "cannot forbid arguments of a call");
}

static void forbid_namespaces(scmp_filter_ctx filter) {
  forbid(filter, SCMP_SYS(clone3), ENOSYS); /* its flags cannot be seen; then the C library uses clone */
  for (size_t i = 0; i < COUNT(kNamespaces); ++i) {
    const scmp_datum_t flag = (scmp_datum_t)kNamespaces[i];
    forbid_where(filter, SCMP_SYS(clone), EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
}

/* libseccomp has no rule for "none of these". */
static void forbid_raw_sockets(scmp_filter_ctx filter) {
  unsigned family = 0;
  for (size_t i = 0; i < COUNT(kAllowedSockets); ++i, ++family)
    for (; family < kAllowedSockets[i]; ++family)
      forbid_where(filter, SCMP_SYS(socket), EAFNOSUPPORT, SCMP_A0(SCMP_CMP_EQ, family));
  forbid_where(filter, SCMP_SYS(socket), EAFNOSUPPORT, SCMP_A0(SCMP_CMP_GE, family));
}

static scmp_filter_ctx filter_of_calls(int with_landlock) {
  const scmp_filter_ctx filter = new_filter(SCMP_ACT_ERRNO(EPERM)); /* the x32 numbers; all others are killed below */
  for (size_t i = 0; i < COUNT(kForbidden); ++i) forbid(filter, kForbidden[i], EPERM);
  for (size_t i = 0; !with_landlock && i < COUNT(kForbiddenWithoutLandlock); ++i)
    forbid(filter, kForbiddenWithoutLandlock[i], EPERM);
  forbid_namespaces(filter);
  /* Of other processes of the same user, the LFS among them. */
  forbid_where(filter, SCMP_SYS(prlimit64), EPERM, SCMP_A0(SCMP_CMP_NE, 0));
  forbid_raw_sockets(filter);
  return filter;
}

/* Another machine's calls have other numbers: whoever makes one is killed. */
static scmp_filter_ctx filter_of_machines(void) {
  const scmp_filter_ctx filter = new_filter(SCMP_ACT_KILL_PROCESS);
  if (seccomp_arch_native() == SCMP_ARCH_X86_64) must(seccomp_arch_add(filter, SCMP_ARCH_X32), "cannot tell x32 apart");
  return filter;
}

static void print(const char* name, scmp_filter_ctx filter) {
  const int file = memfd_create(name, 0);
  if (file < 0) must(-errno, "cannot make a file in memory");
  must(seccomp_export_bpf(filter, file), "cannot export a filter");
  seccomp_release(filter);
  printf("static const struct sock_filter %s[] = {\n", name);
  struct sock_filter statement;
  for (off_t at = 0; pread(file, &statement, sizeof statement, at) == sizeof statement; at += (off_t)sizeof statement)
    printf("    {0x%02x, %u, %u, 0x%08x},\n", statement.code, statement.jt, statement.jf, statement.k);
  printf("};\n");
  close(file);
}

int main(void) {
  printf("/* Made by confine_rules.c. */\n#include <linux/filter.h>\n\n");
  print("kMachineRules", filter_of_machines());
  print("kCallRules", filter_of_calls(1));
  print("kCallRulesWithoutLandlock", filter_of_calls(0));
  return fflush(stdout) == 0 ? 0 : 1;
}
