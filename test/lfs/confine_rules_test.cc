// What the filters of system calls answer, by an interpreter: whatever makes them, these are the calls that workers are
// refused. What the kernel does with them is in test/system.
#include <confine_rules.h>  // made when pif-exec is built
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

namespace pif::lfs::test {
namespace {

using Rules = std::span<const sock_filter>;

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#else
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif
constexpr int kCallsMax = 1024;  // more than there are
constexpr std::uint32_t kKilled = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t kAllowed = SECCOMP_RET_ALLOW;
std::uint32_t refused(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }

std::uint32_t answer_of(Rules rules, const seccomp_data& call) {
  std::uint32_t a = 0;
  for (std::size_t at = 0; at < rules.size(); ++at) {
    const auto& [code, yes, no, k] = rules[at];
    switch (code) {
      case BPF_RET | BPF_K: return k;
      case BPF_LD | BPF_W | BPF_ABS: std::memcpy(&a, reinterpret_cast<const std::byte*>(&call) + k, sizeof a); break;
      case BPF_ALU | BPF_AND | BPF_K: a &= k; break;
      case BPF_JMP | BPF_JA: at += k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += a == k ? yes : no; break;
      case BPF_JMP | BPF_JGT | BPF_K: at += a > k ? yes : no; break;
      case BPF_JMP | BPF_JGE | BPF_K: at += a >= k ? yes : no; break;
      case BPF_JMP | BPF_JSET | BPF_K: at += (a & k) != 0 ? yes : no; break;
      default: FAIL("statement " << at << " has code " << code);
    }
  }
  FAIL("the rules end without an answer");
  return 0;
}

// Of both filters, as the kernel does: to kill comes before to refuse, and that before to allow.
std::uint32_t answer(Rules calls, int number, std::uint64_t argument = 0, std::uint32_t machine = kMachine) {
  seccomp_data call{};
  call.nr = number;
  call.arch = machine;
  call.args[0] = argument;
  const std::uint32_t by_machine = answer_of(kMachineRules, call), by_call = answer_of(calls, call);
  if (by_machine == kKilled || by_call == kKilled) return kKilled;
  return by_machine == kAllowed ? by_call : by_machine;
}

const std::set<int> kForbidden = {SYS_setsid,
                                  SYS_setpgid,
                                  SYS_unshare,
                                  SYS_setns,
                                  SYS_mount,
                                  SYS_umount2,
                                  SYS_pivot_root,
                                  SYS_chroot,
                                  SYS_move_mount,
                                  SYS_open_tree,
                                  SYS_fsopen,
                                  SYS_fsconfig,
                                  SYS_fsmount,
                                  SYS_fspick,
                                  SYS_mount_setattr,
                                  SYS_open_by_handle_at,
                                  SYS_io_uring_setup,
                                  SYS_io_uring_enter,
                                  SYS_io_uring_register,
                                  SYS_pidfd_getfd,
                                  SYS_fchmod,
                                  SYS_fchmodat,
                                  452 /* fchmodat2 */,
                                  SYS_fchown,
                                  SYS_fchownat,
                                  SYS_setxattr,
                                  SYS_lsetxattr,
                                  SYS_fsetxattr,
                                  SYS_removexattr,
                                  SYS_lremovexattr,
                                  SYS_fremovexattr,
#ifdef SYS_chmod
                                  SYS_chmod,
                                  SYS_chown,
                                  SYS_lchown,
#endif
                                  SYS_bpf,
                                  SYS_perf_event_open,
                                  SYS_userfaultfd,
                                  SYS_add_key,
                                  SYS_request_key,
                                  SYS_keyctl,
                                  SYS_init_module,
                                  SYS_finit_module,
                                  SYS_delete_module,
                                  SYS_kexec_load,
                                  SYS_reboot,
                                  SYS_swapon,
                                  SYS_swapoff,
                                  SYS_acct,
                                  SYS_syslog,
                                  SYS_sethostname,
                                  SYS_setdomainname,
                                  SYS_settimeofday,
                                  SYS_clock_settime,
                                  SYS_adjtimex,
                                  SYS_clock_adjtime,
                                  SYS_quotactl};
const std::set<int> kOfOthers = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev};
const std::set<int> kByArgument = {SYS_clone, SYS_prlimit64, SYS_socket};

struct Filter {
  Rules rules;
  bool with_landlock;
};
const Filter kBoth[] = {{kCallRules, true}, {kCallRulesWithoutLandlock, false}};

}  // namespace

TEST_CASE("a worker is refused these calls, and gets all others, known or not") {
  for (const auto& [rules, with_landlock] : kBoth) {
    for (int number = 0; number < kCallsMax; ++number) {
      if (kByArgument.contains(number)) continue;
      const bool is_forbidden = kForbidden.contains(number) || (!with_landlock && kOfOthers.contains(number));
      const std::uint32_t expected = number == SYS_clone3 ? refused(ENOSYS) : is_forbidden ? refused(EPERM) : kAllowed;
      INFO("call " << number << (with_landlock ? "" : " without Landlock"));
      REQUIRE(answer(rules, number) == expected);
      REQUIRE(answer(rules, number, ~std::uint64_t{0}) == expected);
    }
  }
}

TEST_CASE("a worker clones processes and threads, but no namespaces") {
  constexpr std::uint64_t kNamespaces =
      CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> flags = {0, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, kNamespaces};
  for (int bit = 0; bit < 64; ++bit) flags.push_back(std::uint64_t{1} << bit);
  for (int i = 0; i < 1000; ++i) flags.push_back(random() & random() & random());
  for (const auto& [rules, with_landlock] : kBoth) {
    for (const std::uint64_t one : flags) {
      INFO("flags " << one);
      REQUIRE(answer(rules, SYS_clone, one) == ((one & kNamespaces) != 0 ? refused(EPERM) : kAllowed));
    }
  }
}

TEST_CASE("a worker opens sockets of four families only, and changes its own limits only") {
  const std::set<std::uint64_t> families = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
  for (const auto& [rules, with_landlock] : kBoth) {
    for (const std::uint64_t past : {std::uint64_t{0}, std::uint64_t{1} << 31, ~std::uint64_t{0} << 6}) {
      for (std::uint64_t i = 0; i < 64; ++i) {
        INFO("argument " << (past | i));
        const bool is_open = families.contains(past | i);
        REQUIRE(answer(rules, SYS_socket, past | i) == (is_open ? kAllowed : refused(EAFNOSUPPORT)));
        REQUIRE(answer(rules, SYS_prlimit64, past | i) == ((past | i) == 0 ? kAllowed : refused(EPERM)));
      }
    }
  }
}

TEST_CASE("calls by another machine's numbers end a worker, and those of x32 are refused") {
  for (const auto& [rules, with_landlock] : kBoth) {
    for (int number = 0; number < kCallsMax; ++number) {
      for (const std::uint32_t machine : {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0})
        REQUIRE(answer(rules, number, 0, machine) == kKilled);
#if defined(__x86_64__)
      REQUIRE(answer(rules, 0x40000000 | number) == refused(EPERM));
      REQUIRE(answer(rules, -2 - number) == refused(EPERM));
#endif
    }
    REQUIRE(answer(rules, -1) == kAllowed);  // no call, by which tracers skip one
  }
}

}  // namespace pif::lfs::test
