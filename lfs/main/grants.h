/* Folders that a tool's user gives to its workers (docs/SECURITY.md "Workers"). All functions: 0, or -1 after a line on
 * stderr that says what was wrong. */
#pragma once

#include <stddef.h>

enum { kGrantsMax = 16, kKeptAwayMax = 512 };

struct grant {
  const char* path;
  int may_write;
  int folder; /* O_PATH; -1: not open */
};

struct grants {
  size_t count;
  struct grant each[kGrantsMax];
  size_t kept_away_count;
  const char* kept_away[kKeptAwayMax]; /* what no grant may be in, or have in it; what is not there is no matter */
};

int add_grant(struct grants* grants, const char* path, int may_write);
int keep_away(struct grants* grants, const char* path);

/* Opens the folders. As their user, who may not be led to what he could not open; and what he cannot use is refused
 * here, where the reason can be told. */
int open_grants(struct grants* grants);
/* That none of them is in what is kept away, nor has any of it. With the rights of the LFS, who can look at that. What
 * is compared is what was opened, by device and number: names may lead anywhere. */
int check_grants(const struct grants* grants);
