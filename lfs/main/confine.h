/* What keeps a worker inside: resource limits, Landlock and seccomp, as far as this kernel has them. docs/SECURITY.md
 * "Workers" says what each stops. All functions: 0, or -1 with errno set and *what saying what failed. */
#pragma once

#include "grants.h"

/* Limits of memory (unless `any_memory`), processes, descriptors and cores; the first to go when memory runs out; no
 * capabilities, if it is root's. After the change of user. */
int confine_resources(int any_memory, const char** what);

/* From now on the process and its children can read and run only the system's programs and libraries, the program
 * that is open at `program` (-1: what is at `path`), and, unless these are of the system, the files beside `path`
 * (NULL: none), and what is in folders that were granted; write only under `own` ("-": nowhere), in folders granted for
 * that, and to what they hold open; signal and trace only each other. Takes the grants' descriptors.
 * Gives the version of Landlock that does it in *version: below 6 signals are free, below 1 (no Landlock) nothing is
 * done. */
int confine_files(const char* path, int program, const char* own, struct grants* grants, int* version,
                  const char** what);

/* From now on no system calls that a tool has no business with. `landlock`: what confine_files gave. */
int confine_calls(int landlock, const char** what);
