/* galley_forks DIR PATH: a file as Galley has it (Nieuwejaar, Kotz 1997, figure 2): three subfiles with different forks
 * of different lengths. Its records are those of the paper's example: keys in one fork, the data of each polarization
 * in one of its own, so that who looks for a key reads keys only. Prints all forks, and the keys of the first subfile.
 * Built with `cc galley_forks.c $(pkg-config --cflags --libs pif)`. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <pif/client/pif.h>

enum { SUBFILES = 3, KEY = 8, DATA = 12 };

/* `count` records of `length` bytes, each a line. */
static int write_fork(pif_connection* connection, pif_file* file, uint32_t subfile, const char* name, uint32_t length,
                      int count) {
  const pif_create_options options = {.record_length = length};
  pif_file* fork = pif_create_fork(connection, file, subfile, name, &options);
  int done = fork == NULL ? -1 : 0;
  for (int i = 0; done == 0 && i < count; ++i) {
    char record[32];
    snprintf(record, sizeof record, "%u.%0*d\n", (unsigned)subfile, (int)length - 3, i);
    done = pif_write(fork, record, length);
  }
  if (done == 0) done = pif_commit(fork);
  pif_close(fork);
  return done;
}

/* Subfile 0 has keys and both polarizations, subfile 1 keys and one of them, subfile 2 only keys. */
static int write_forks(pif_connection* connection, pif_file* file) {
  static const char* const names[SUBFILES] = {"keys", "left", "right"};
  for (uint32_t subfile = 0; subfile < SUBFILES; ++subfile) {
    for (uint32_t i = 0; i < SUBFILES - subfile; ++i) {
      const int records = 2 + (int)subfile;
      if (write_fork(connection, file, subfile, names[i], i == 0 ? KEY : DATA, records) != 0) return -1;
    }
  }
  return 0;
}

/* Nobody sees any of it before the last commit. */
static int make(pif_connection* connection, const char* path) {
  const pif_create_options options = {.placed = 1, .width = SUBFILES};
  pif_file* file = pif_create(connection, path, &options);
  int done = file == NULL ? -1 : write_forks(connection, file);
  if (done == 0) done = pif_commit(file);
  pif_close(file);
  return done;
}

static int show(void* user, const char* name, const pif_stat_info* info) {
  (void)user;
  printf("%s\t%" PRIu64 "\n", name, info->bytes);
  return 0;
}

static int look(pif_connection* connection, const char* path) {
  char keys[64];
  pif_file* file = pif_open(connection, path, PIF_READ);
  if (file == NULL) return -1;
  int done = pif_list_forks(connection, file, show, NULL);
  pif_file* fork = done == 0 ? pif_open_fork(connection, file, 0, "keys", PIF_READ) : NULL;
  const int64_t read = fork == NULL ? -1 : pif_pread(fork, keys, sizeof keys, 0);
  if (read >= 0) fwrite(keys, 1, (size_t)read, stdout);
  pif_close(fork);
  pif_close(file);
  return read < 0 ? -1 : done;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: galley_forks DIR PATH\n");
    return 2;
  }
  pif_connection* connection = pif_connect(argv[1], NULL);
  if (connection == NULL) return 3;
  int done = pif_error(connection) == PIF_OK ? make(connection, argv[2]) : -1;
  if (done == 0) done = look(connection, argv[2]);
  if (done != 0) fprintf(stderr, "galley_forks: %s\n", pif_error_text(connection));
  pif_disconnect(connection);
  return done == 0 ? 0 : 3;
}
