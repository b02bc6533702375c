/* pif-exec [OPTION...] PARENT USER GROUPS OWN FOLDER BUILD PROGRAM [ARGUMENT...]
 *
 * What posix_spawn cannot do between an LFS and a worker: become the worker's user, die with the LFS, close what was
 * not meant for the worker, and lock it in (confine.h). Small and static, because it runs once per worker before
 * anything else does.
 *
 * PARENT: pid of the LFS. USER, GROUPS: numbers ("-": stay); GROUPS "100,4,27", primary first. OWN: a folder to make
 * for this worker alone ("-": none), where other workers of its user reach it. FOLDER: where it starts. BUILD: the
 * build id of PROGRAM, in hex ("-": any). If another build is there, or none, the program at descriptor 5 is run, which
 * the LFS has stored. Without one, descriptor 4 says so: one byte; else the program's start closes it. What was looked
 * at is what runs, by its descriptor. OPTIONS: --read DIR and --write DIR: the worker may open things there (grants.h);
 * --keep-away DIR: none of these may be there; --any-memory: no limit of memory. Exit codes: 126: neither was there;
 * 127: it cannot be run; stderr says why. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine.h"
#include "grants.h"
#include "pif/base/build_id.h"

enum { kBegun = 4, kProgram = 5, kFirstForeignFd = 6, kGroupsMax = 64, kNotThere = 126, kCannotRun = 127 };
enum { kBusyTries = 400, kBusyPause = 5000 /* us */ };

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

/* How many groups were given, primary first; 0: what was given cannot be read. */
static size_t read_groups(const char* groups, gid_t* list) {
  size_t count = 0;
  const char* at = groups;
  while (*at != '\0' && count < kGroupsMax) {
    char* end = NULL;
    list[count++] = (gid_t)strtoul(at, &end, 10);
    if (end == at) return 0;
    at = *end == ',' ? end + 1 : end;
  }
  return count;
}

/* Returns 0, or kCannotRun. Order matters: groups before user, and the user before what the change of user would undo.
 */
static int become(const char* user, const char* groups) {
  if (strcmp(user, "-") == 0) return 0;
  gid_t list[kGroupsMax];
  const size_t count = read_groups(groups, list);
  if (count == 0) {
    errno = EINVAL;
    return die("groups of the user");
  }
  const uid_t uid = (uid_t)strtoul(user, NULL, 10);
  if (setgroups(count, list) != 0) return die("cannot set the groups");
  if (setresgid(list[0], list[0], list[0]) != 0) return die("cannot set the group");
  if (setresuid(uid, uid, uid) != 0) return die("cannot become the user");
  return 0;
}

static long read_program(void* program, uint64_t at, void* into, size_t bytes) {
  return (long)pread(*(const int*)program, into, bytes, (off_t)at);
}

/* Whether a regular file is open there, with that build id in hex. */
static int is_build(int program, const char* build) {
  struct stat is;
  unsigned char id[kPifBuildIdBytesMax];
  char text[2 * kPifBuildIdBytesMax + 1] = "";
  if (fstat(program, &is) != 0 || !S_ISREG(is.st_mode)) return 0;
  const size_t bytes = pif_build_id(read_program, &program, id);
  for (size_t i = 0; i < bytes; ++i) {
    text[2 * i] = "0123456789abcdef"[id[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
  }
  return bytes > 0 && strcmp(text, build) == 0;
}

/* Whether the program's file, in that build, is open at kProgram now. */
static int open_program(const char* path, const char* build) {
  const int found = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (found < 0) return 0;
  const int is_it = is_build(found, build);
  if (found == kProgram && is_it) return 1;
  const int moved = is_it && dup3(found, kProgram, O_CLOEXEC) == kProgram;
  close(found);
  return moved;
}

/* Takes the user's rights to open things, or gives them back: what comes next needs the LFS's. */
struct rights {
  int change;
  uid_t uid;
  gid_t gid;
};

static int take_user_rights(const char* user, const char* groups, struct rights* before) {
  gid_t list[kGroupsMax];
  before->change = strcmp(user, "-") != 0;
  before->uid = geteuid();
  before->gid = getegid();
  if (!before->change) return 0;
  const size_t count = read_groups(groups, list);
  if (count > 0 && setgroups(count, list) == 0 && setegid(list[0]) == 0 && seteuid((uid_t)strtoul(user, NULL, 10)) == 0)
    return 0;
  return die("cannot open things as the worker's user");
}

static int give_back_rights(const struct rights* before) {
  if (!before->change || (seteuid(before->uid) == 0 && setegid(before->gid) == 0)) return 0;
  return die("cannot get the LFS's rights back");
}

/* As the user, who may not be led to what he could not open. Gives whether it was there in *found. Returns 0, or
 * kCannotRun. */
static int look_for_program(const char* user, const char* groups, const char* path, const char* build, int* found) {
  struct rights before;
  if (take_user_rights(user, groups, &before) != 0) return kCannotRun;
  *found = open_program(path, build);
  return give_back_rights(&before);
}

static int take_grants(const char* user, const char* groups, struct grants* grants) {
  struct rights before;
  if (grants->count == 0) return 0;
  if (take_user_rights(user, groups, &before) != 0) return kCannotRun;
  const int opened = open_grants(grants);
  if (give_back_rights(&before) != 0 || opened != 0) return kCannotRun;
  return check_grants(grants) == 0 ? 0 : kCannotRun;
}

/* What runs: the program where it was found by its path, or what the LFS has stored. Returns 0 with *by_path set, or an
 * exit code. */
static int choose_program(char** argv, int* by_path) {
  if (fcntl(kBegun, F_SETFD, FD_CLOEXEC) != 0) return die("no descriptor to say that the program is not there");
  const int is_stored = fcntl(kProgram, F_SETFD, FD_CLOEXEC) == 0;
  const int failed = look_for_program(argv[2], argv[3], argv[7], argv[6], by_path);
  if (failed != 0 || *by_path || is_stored) return failed;
  return write(kBegun, "", 1) == 1 ? kNotThere : die("cannot say that the program is not there");
}

struct options {
  int any_memory;
  struct grants grants;
};

/* How many arguments were options; -1: one of them is wrong. */
static int read_options(int argc, char** argv, struct options* options) {
  int at = 1;
  for (; at < argc && strncmp(argv[at], "--", 2) == 0; ++at) {
    const char* const value = at + 1 < argc ? argv[at + 1] : NULL;
    if (strcmp(argv[at], "--any-memory") == 0) {
      options->any_memory = 1;
      continue;
    }
    int failed = value == NULL;
    if (!failed && strcmp(argv[at], "--keep-away") == 0)
      failed = keep_away(&options->grants, value);
    else if (!failed && (strcmp(argv[at], "--read") == 0 || strcmp(argv[at], "--write") == 0))
      failed = add_grant(&options->grants, value, argv[at][2] == 'w');
    else
      failed = 1;
    if (failed) return -1;
    ++at;
  }
  return at - 1;
}

/* Returns 0, or kCannotRun: a worker that cannot be locked in as this kernel could does not run. */
static int confine(const char* path, int program, const char* own, struct options* options) {
  int landlock = 0;
  const char* what = NULL;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return die("cannot give up gaining rights");
  if (confine_resources(options->any_memory, &what) != 0 ||
      confine_files(path, program, own, &options->grants, &landlock, &what) != 0 || confine_calls(landlock, &what) != 0)
    return die(what);
  return 0;
}

/* Somebody who started another worker at the same time may still have the stored program open for writing: a child has
 * copies of all descriptors of its LFS until it runs its own program. */
static void run_by_descriptor(char** arguments) {
  for (int i = 0; i < kBusyTries; ++i) {
    fexecve(kProgram, arguments, environ);
    if (errno != ETXTBSY) return;
    usleep(kBusyPause);
  }
}

static int usage(void) {
  fputs("usage: pif-exec [OPTION...] PARENT USER GROUPS OWN FOLDER BUILD PROGRAM [ARGUMENT...]\n", stderr);
  return kCannotRun;
}

/* argv[1]: PARENT. Returns 0, or kCannotRun. */
static int become_worker(char** argv) {
  if (become(argv[2], argv[3]) != 0) return kCannotRun;
  /* After the change of user, which clears it. The LFS may have died before this line: then nobody would kill us. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return die("cannot ask to die with the LFS");
  if (getppid() != (pid_t)strtol(argv[1], NULL, 10)) return kCannotRun;
  umask(077);
  /* The folder may not exist on this node; then the worker starts in the root. */
  if (chdir(argv[5]) != 0 && chdir("/") != 0) return die(argv[5]);
  if (strcmp(argv[4], "-") != 0 && setenv("TMPDIR", argv[4], 1) != 0) return die("TMPDIR");
  return 0;
}

int main(int argc, char** argv) {
  static struct options options;
  const int count = read_options(argc, argv, &options);
  if (count < 0 || argc - count < 8) return usage();
  argv += count;
  const int has_build = strcmp(argv[6], "-") != 0;
  if (close_range(has_build ? kFirstForeignFd : kBegun, ~0U, 0) != 0) return die("cannot close descriptors");
  int by_path = 1;
  int failed = has_build ? choose_program(argv, &by_path) : 0;
  if (failed == 0) failed = take_grants(argv[2], argv[3], &options.grants);
  if (failed == 0) failed = make_own(argv[4], argv[2], argv[3]);
  if (failed == 0) failed = become_worker(argv);
  if (failed == 0) failed = confine(by_path ? argv[7] : NULL, has_build ? kProgram : -1, argv[4], &options);
  if (failed != 0) return failed;
  if (has_build)
    run_by_descriptor(argv + 7);
  else
    execv(argv[7], argv + 7);
  return die(by_path ? argv[7] : "a program that was brought (is the LFS's disk mounted noexec?)");
}
