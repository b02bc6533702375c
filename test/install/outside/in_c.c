/* Uses the installed C interface: makes a file on the file system that is named, and reads it; or says that there is
 * none. */
#include <stdio.h>
#include <string.h>

#include <pif/client/pif.h>

static int use(pif_connection* connection) {
  const pif_create_options options = {.record_length = 4};
  pif_file* file = pif_create(connection, "/from_c", &options);
  if (file == NULL || pif_write(file, "onetwothree.", 12) != 0 || pif_commit(file) != 0) return 1;
  pif_close(file);
  if (pif_chmod(connection, "/from_c", 0600) != 0) return 1;
  char read[12];
  file = pif_open(connection, "/from_c", PIF_READ);
  if (file == NULL || pif_read(file, read, sizeof read, 3) != 3 || memcmp(read, "onetwothree.", 12) != 0) return 1;
  pif_close(file);
  pif_stat_info info;
  if (pif_stat(connection, "/from_c", &info) != 0) return 1;
  printf("%d records, mode %04o\n", (int)info.records, (unsigned)info.mode);
  return pif_remove(connection, "/from_c", 0) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pif_connection* connection = pif_connect(argv[1], NULL);
  if (connection == NULL) return 1;
  if (pif_error(connection) == PIF_E_NOT_FOUND) {
    printf("no file system: %s\n", pif_error_text(connection));
    pif_disconnect(connection);
    return 0;
  }
  const int code = use(connection);
  if (code != 0) fprintf(stderr, "%s\n", pif_error_text(connection));
  pif_disconnect(connection);
  return code;
}
