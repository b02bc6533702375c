#define _GNU_SOURCE
#include <confine_rules.h> /* made by confine_rules.c, when this is built */
#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "confine.h"

#define RULES(array) \
  { sizeof(array) / sizeof *(array), (struct sock_filter*)(array) }

/* EINVAL: not built into this kernel. */
static int apply(const struct sock_fprog* rules) {
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, rules, 0, 0) == 0 || errno == EINVAL ? 0 : -1;
}

int confine_calls(int landlock, const char** what) {
  static const struct sock_fprog machine = RULES(kMachineRules);
  static const struct sock_fprog with_landlock = RULES(kCallRules);
  static const struct sock_fprog alone = RULES(kCallRulesWithoutLandlock);
  if (apply(&machine) == 0 && apply(landlock == 0 ? &alone : &with_landlock) == 0) return 0;
  *what = "cannot forbid system calls";
  return -1;
}
