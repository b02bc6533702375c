/* pif-exec PARENT USER GROUPS OWN FOLDER PROGRAM [ARGUMENT...]
 *
 * What posix_spawn cannot do between an LFS and a worker: become the worker's user, die with the LFS, close what was
 * not meant for the worker, and lock it in (confine.h). Small and static, because it runs once per worker before
 * anything else does.
 *
 * PARENT: pid of the LFS. USER, GROUPS: numbers ("-": stay); GROUPS "100,4,27", primary first. OWN: a folder to make
 * for this worker alone ("-": none), where other workers of its user reach it. FOLDER: where it starts. Exit code 127:
 * the program cannot be run; stderr says why. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine.h"

enum { kFirstForeignFd = 4, kGroupsMax = 64, kCannotRun = 127 };

static int die(const char* what) {
  fprintf(stderr, "pif-exec: %s: %s\n", what, strerror(errno));
  return kCannotRun;
}

/* Made before the user is changed: the folder above may be writable to the LFS only. Returns 0, or kCannotRun. */
static int make_own(const char* folder, const char* user, const char* groups) {
  if (strcmp(folder, "-") == 0) return 0;
  if (mkdir(folder, 0700) != 0) return die(folder);
  if (strcmp(user, "-") == 0) return 0;
  const uid_t uid = (uid_t)strtoul(user, NULL, 10);
  const gid_t gid = (gid_t)strtoul(groups, NULL, 10);
  return chown(folder, uid, gid) == 0 ? 0 : die(folder);
}

/* Returns 0, or kCannotRun. Order matters: groups before user, and the user before what the change of user would undo.
 */
static int become(const char* user, const char* groups) {
  if (strcmp(user, "-") == 0) return 0;
  gid_t list[kGroupsMax];
  size_t count = 0;
  const char* at = groups;
  while (*at != '\0' && count < kGroupsMax) {
    char* end = NULL;
    list[count++] = (gid_t)strtoul(at, &end, 10);
    if (end == at) {
      errno = EINVAL;
      return die("groups");
    }
    at = *end == ',' ? end + 1 : end;
  }
  if (count == 0) {
    errno = EINVAL;
    return die("a user without groups");
  }
  const uid_t uid = (uid_t)strtoul(user, NULL, 10);
  if (setgroups(count, list) != 0) return die("cannot set the groups");
  if (setresgid(list[0], list[0], list[0]) != 0) return die("cannot set the group");
  if (setresuid(uid, uid, uid) != 0) return die("cannot become the user");
  return 0;
}

/* Returns 0, or kCannotRun: a worker that cannot be locked in as this kernel could does not run. */
static int confine(const char* program, const char* own) {
  int landlock = 0;
  const char* what = NULL;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return die("cannot give up gaining rights");
  if (confine_resources(&what) != 0 || confine_files(program, own, &landlock, &what) != 0 ||
      confine_calls(landlock, &what) != 0)
    return die(what);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 7) {
    fputs("usage: pif-exec PARENT USER GROUPS OWN FOLDER PROGRAM [ARGUMENT...]\n", stderr);
    return kCannotRun;
  }
  int failed = make_own(argv[4], argv[2], argv[3]);
  if (failed == 0) failed = become(argv[2], argv[3]);
  if (failed != 0) return failed;
  /* After the change of user, which clears it. The LFS may have died before this line: then nobody would kill us. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return die("cannot ask to die with the LFS");
  if (getppid() != (pid_t)strtol(argv[1], NULL, 10)) return kCannotRun;
  umask(077);
  if (close_range(kFirstForeignFd, ~0U, 0) != 0) return die("cannot close descriptors");
  /* The folder may not exist on this node; then the worker starts in the root. */
  if (chdir(argv[5]) != 0 && chdir("/") != 0) return die(argv[5]);
  if (strcmp(argv[4], "-") != 0 && setenv("TMPDIR", argv[4], 1) != 0) return die("TMPDIR");
  failed = confine(argv[6], argv[4]);
  if (failed != 0) return failed;
  execv(argv[6], argv + 6);
  return die(argv[6]);
}
