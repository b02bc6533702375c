/* records DIR PATH: the size of every record of a file, in C. Built with `cc records.c $(pkg-config --cflags --libs
 * pif)`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <pif/client/pif.h>

enum { RECORDS = 1024, BYTES = 16 << 20 };

/* Fixed records are all of one length, but for the last one. */
static int show_fixed(pif_file* file) {
  uint64_t records = 0, bytes = 0;
  if (pif_file_length(file, &records, &bytes) != 0) return -1;
  const uint64_t length = pif_record_length(file);
  for (uint64_t i = 0; i < records; ++i)
    printf("%" PRIu64 "\t%" PRIu64 "\n", i, i + 1 < records ? length : bytes - i * length);
  return 0;
}

static int show_variable(pif_file* file) {
  static char data[BYTES];
  static uint32_t lengths[RECORDS];
  for (uint64_t number = 0;;) {
    const int64_t read = pif_read_batch(file, data, sizeof data, lengths, RECORDS);
    if (read <= 0) return (int)read;
    for (int64_t i = 0; i < read; ++i) printf("%" PRIu64 "\t%" PRIu32 "\n", number++, lengths[i]);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: records DIR PATH\n");
    return 2;
  }
  pif_connection* connection = pif_connect(argv[1], NULL);
  if (connection == NULL) return 3;
  pif_file* file = pif_error(connection) == PIF_OK ? pif_open(connection, argv[2], PIF_READ) : NULL;
  int done = -1;
  if (file != NULL) done = pif_record_length(file) > 0 ? show_fixed(file) : show_variable(file);
  if (done < 0) fprintf(stderr, "records: %s\n", pif_error_text(connection));
  pif_close(file);
  pif_disconnect(connection);
  return done < 0 ? 3 : 0;
}
