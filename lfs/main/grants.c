#define _GNU_SOURCE
#include "grants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kDepthMax = 4096, kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC };

static const char* option_of(const struct grant* grant) { return grant->may_write ? "--write" : "--read"; }

static int refuse(const struct grant* grant, const char* why) {
  fprintf(stderr, "pif-exec: %s %s: %s\n", option_of(grant), grant->path, why);
  return -1;
}

int add_grant(struct grants* grants, const char* path, int may_write) {
  struct grant grant = {path, may_write, -1};
  if (grants->count == kGrantsMax) return refuse(&grant, "too many folders are given");
  grants->each[grants->count++] = grant;
  return 0;
}

int keep_away(struct grants* grants, const char* path) {
  if (grants->kept_away_count == kKeptAwayMax) {
    fprintf(stderr, "pif-exec: too many folders are to be kept from workers\n");
    return -1;
  }
  grants->kept_away[grants->kept_away_count++] = path;
  return 0;
}

int open_grants(struct grants* grants) {
  for (size_t i = 0; i < grants->count; ++i) {
    struct grant* const one = &grants->each[i];
    one->folder = open(one->path, kFolder);
    if (one->folder < 0) return refuse(one, strerror(errno));
    const int wanted = X_OK | (one->may_write ? W_OK | R_OK : R_OK);
    if (faccessat(one->folder, ".", wanted, AT_EACCESS) != 0) return refuse(one, strerror(errno));
  }
  return 0;
}

static int is_same(const struct stat* a, const struct stat* b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether what is open at `inner` is `outer`, or somewhere in it; -1 with errno set: it cannot be found out. */
static int is_within(int inner, const struct stat* outer) {
  int at = openat(inner, ".", kFolder);
  for (int depth = 0; at >= 0 && depth < kDepthMax; ++depth) {
    struct stat here;
    struct stat above;
    const int up = openat(at, "..", kFolder);
    const int failed = up < 0 || fstat(at, &here) != 0 || fstat(up, &above) != 0;
    const int error = errno;
    close(at);
    at = up;
    errno = error;
    if (failed) break;
    if (is_same(&here, outer) || is_same(&here, &above)) {
      close(up);
      return is_same(&here, outer);
    }
  }
  if (at >= 0) close(at);
  return -1;
}

static int check_apart(const struct grant* grant, const char* kept, int folder) {
  struct stat granted;
  struct stat away;
  if (fstat(grant->folder, &granted) != 0 || fstat(folder, &away) != 0) return refuse(grant, strerror(errno));
  const int in_it = is_within(grant->folder, &away);
  const int has_it = is_within(folder, &granted);
  if (in_it < 0 || has_it < 0) return refuse(grant, strerror(errno));
  if (in_it == 0 && has_it == 0) return 0;
  fprintf(stderr, "pif-exec: %s %s: it %s %s, which workers are kept away from: name another folder\n",
          option_of(grant), grant->path, in_it ? "is in" : "has in it", kept);
  return -1;
}

static int check_all_apart(const struct grants* grants, const char* kept, int folder) {
  for (size_t i = 0; i < grants->count; ++i)
    if (check_apart(&grants->each[i], kept, folder) != 0) return -1;
  return 0;
}

int check_grants(const struct grants* grants) {
  for (size_t i = 0; grants->count > 0 && i < grants->kept_away_count; ++i) {
    const int folder = open(grants->kept_away[i], kFolder);
    if (folder < 0 && errno == ENOENT) continue;
    if (folder < 0) return refuse(&grants->each[0], strerror(errno));
    const int failed = check_all_apart(grants, grants->kept_away[i], folder);
    close(folder);
    if (failed) return -1;
  }
  return 0;
}
