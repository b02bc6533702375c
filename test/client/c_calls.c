#include "c_calls.h"

#include <string.h>

#define TEXT_OF(x) #x
#define LINE_OF(x) TEXT_OF(x)
#define EXPECT(condition) \
  if (!(condition)) return "line " LINE_OF(__LINE__) ": " #condition

static void fill(unsigned char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) bytes[i] = (unsigned char)((i + seed) * 2654435761u >> 16);
}

static const char* fixed_records(pif_connection* c) {
  unsigned char in[1000], out[1000];
  fill(in, sizeof in, 1);
  const pif_create_options options = {.record_length = 100, .width = 2, .exclusive = 1};
  pif_file* file = pif_create(c, "/d/f", &options);
  EXPECT(file != NULL);
  EXPECT(pif_record_length(file) == 100);
  EXPECT(pif_write(file, in, sizeof in) == 0);
  EXPECT(pif_tell(file) == 10);
  EXPECT(pif_preallocate(file, 100000) == 0);
  EXPECT(pif_commit(file) == 0);
  EXPECT(pif_preallocate(file, 1) == -PIF_E_INVALID);
  EXPECT(pif_close(file) == 0);

  file = pif_open(c, "/d/f", PIF_WRITE);
  EXPECT(file != NULL);
  EXPECT(pif_read(file, out, sizeof out, 10) == 10);
  EXPECT(memcmp(in, out, sizeof in) == 0);
  EXPECT(pif_read(file, out, sizeof out, 1) == 0);
  EXPECT(pif_read_at(file, 11, out, sizeof out, 1) == -PIF_E_END_OF_FILE);
  EXPECT(pif_error(c) == PIF_E_END_OF_FILE && strlen(pif_error_text(c)) > 0);
  EXPECT(strcmp(pif_code_name(PIF_E_END_OF_FILE), "end-of-file") == 0);
  EXPECT(pif_seek(file, 3) == 0);
  fill(in + 300, 100, 7);
  EXPECT(pif_write(file, in + 300, 100) == 0);
  fill(in + 500, 200, 8);
  EXPECT(pif_write_at(file, 5, in + 500, 200) == 0);
  pif_read_request requests[2] = {{.first = 0, .count = 5, .out = out, .out_bytes = 500},
                                  {.first = 5, .count = 5, .out = out + 500, .out_bytes = 500}};
  EXPECT(pif_read_many(file, requests, 2) == 0);
  EXPECT(requests[0].done == 5 && requests[1].done == 5);
  EXPECT(memcmp(in, out, sizeof in) == 0);

  const int64_t reading = pif_start_read(file, 2, out, 100, 1);
  const int64_t writing = pif_start_write(file, 9, in, 100);
  EXPECT(reading > 0 && writing > 0);
  EXPECT(pif_wait(file, reading) == 1);
  EXPECT(pif_wait(file, writing) == 1);
  EXPECT(pif_is_done(file, reading) == 1);
  EXPECT(memcmp(in + 200, out, 100) == 0);

  EXPECT(pif_append(file, in, 200) == 10);
  EXPECT(pif_pwrite(file, "bytes", 5, 1198) == 5);
  EXPECT(pif_pread(file, out, 100, 1198) == 5);
  EXPECT(memcmp(out, "bytes", 5) == 0);
  uint64_t records = 0, bytes = 0;
  EXPECT(pif_file_length(file, &records, &bytes) == 0);
  EXPECT(records == 13 && bytes == 1203);
  EXPECT(pif_close(file) == 0);
  return NULL;
}

static const char* variable_records(pif_connection* c) {
  const pif_create_options options = {.kind = PIF_DELIMITED, .delimiter = '\n'};
  const uint32_t lengths[3] = {2, 1, 4};
  pif_file* file = pif_create(c, "/d/lines", &options);
  EXPECT(file != NULL);
  EXPECT(pif_write_batch(file, "a\n\nabc\n", 7, lengths, 3) == 0);
  EXPECT(pif_commit(file) == 0);
  EXPECT(pif_close(file) == 0);
  file = pif_open(c, "/d/lines", PIF_WRITE);
  EXPECT(file != NULL);
  EXPECT(pif_append_batch(file, "z\n", 2, lengths, 1) == 3);
  char out[16];
  uint32_t got[8];
  EXPECT(pif_read_batch(file, out, sizeof out, got, 8) == 4);
  EXPECT(memcmp(out, "a\n\nabc\nz\n", 9) == 0);
  EXPECT(got[0] == 2 && got[1] == 1 && got[2] == 4 && got[3] == 2);
  EXPECT(pif_read_batch(file, out, sizeof out, got, 8) == 0);
  EXPECT(pif_seek(file, 2) == 0);
  EXPECT(pif_read_batch(file, out, 3, got, 8) == -PIF_E_TOO_LARGE);
  EXPECT(pif_tell(file) == 2);
  EXPECT(pif_close(file) == 0);
  return NULL;
}

struct listing {
  int names;
  int folders;
};

static int count_names(void* user, const char* name, const pif_stat_info* info) {
  struct listing* seen = user;
  ++seen->names;
  seen->folders += info->is_folder;
  return strcmp(name, "stop") == 0;
}

static const char* names(pif_connection* c) {
  EXPECT(pif_rename(c, "/d/f", "/d/g", 0) == 0);
  EXPECT(pif_rename(c, "/d/none", "/d/h", 0) == -PIF_E_NOT_FOUND);
  pif_stat_info info;
  EXPECT(pif_stat(c, "/d/g", &info) == 0);
  EXPECT(info.is_folder == 0 && info.kind == PIF_FIXED && info.record_length == 100 && info.width == 2);
  EXPECT(pif_chmod(c, "/d/g", 0640) == 0);
  EXPECT(pif_stat(c, "/d/g", &info) == 0 && info.mode == 0640);
  const uint32_t owner = info.owner;
  EXPECT(pif_chown(c, "/d/g", PIF_KEEP, info.group) == 0);
  EXPECT(pif_stat(c, "/d/g", &info) == 0 && info.owner == owner);
  EXPECT(pif_chmod(c, "/d/none", 0640) == -PIF_E_NOT_FOUND);
  EXPECT(pif_mkdir_mode(c, "/d/private", 0, 0700) == 0);
  EXPECT(pif_stat(c, "/d/private", &info) == 0 && info.mode == 0700);
  EXPECT(pif_remove(c, "/d/private", 0) == 0);
  const pif_create_options plain = {.bevy = PIF_NO_BEVIES};
  EXPECT(pif_close(pif_create(c, "/d/plain", &plain)) == 0);
  EXPECT(pif_mkdir(c, "/d/x/y", 1) == 0);
  struct listing seen = {0, 0};
  EXPECT(pif_list(c, "/d", count_names, &seen) == 0);
  EXPECT(seen.names == 3 && seen.folders == 1);
  EXPECT(pif_remove(c, "/d", 0) == -PIF_E_NOT_EMPTY);
  EXPECT(pif_remove(c, "/d", 1) == 0);
  EXPECT(pif_stat(c, "/d", &info) == -PIF_E_NOT_FOUND);
  EXPECT(pif_open(c, "/d/g", PIF_READ) == NULL);
  EXPECT(pif_error(c) == PIF_E_NOT_FOUND);
  return NULL;
}

static const char* dropped_files(pif_connection* c) {
  pif_file* file = pif_create(c, "/gone", NULL);
  EXPECT(file != NULL);
  EXPECT(pif_write(file, "x", 1) == 0);
  EXPECT(pif_abort(file) == 0);
  EXPECT(pif_close(file) == 0);
  pif_stat_info info;
  EXPECT(pif_stat(c, "/gone", &info) == -PIF_E_NOT_FOUND);
  return NULL;
}

struct creates {
  uint64_t count, bytes;
};
static int count_creates(void* user, const pif_operation_stats* stats) {
  struct creates* creates = user;
  if (strcmp(stats->name, "create") != 0) return 0;
  creates->count = stats->count;
  creates->bytes = stats->bytes_received + stats->bytes_sent;
  return stats->p50_us <= stats->p99_us ? 1 : 0;
}

static const char* counters(pif_connection* c) {
  struct creates creates = {0, 99};
  EXPECT(pif_stats(c, count_creates, &creates) == 0);
  EXPECT(creates.count >= 3 && creates.bytes == 0);
  return NULL;
}

static int ignore_stats(void* user, const pif_operation_stats* stats) { return user == stats; }

static const char* nothing_for_names(pif_connection* c) {
  pif_stat_info info;
  EXPECT(pif_mkdir(c, NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_error(c) == PIF_E_INVALID && strcmp(pif_error_text(c), "NULL was given for \"path\"") == 0);
  EXPECT(pif_remove(c, NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_rename(c, NULL, "/a", 0) == -PIF_E_INVALID && pif_rename(c, "/a", NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_stat(c, NULL, &info) == -PIF_E_INVALID && pif_stat(c, "/d", NULL) == -PIF_E_INVALID);
  EXPECT(pif_list(c, NULL, count_names, NULL) == -PIF_E_INVALID && pif_list(c, "/", NULL, NULL) == -PIF_E_INVALID);
  EXPECT(pif_stats(c, NULL, NULL) == -PIF_E_INVALID);
  EXPECT(pif_create(c, NULL, NULL) == NULL && pif_error(c) == PIF_E_INVALID);
  EXPECT(pif_open(c, NULL, PIF_READ) == NULL && pif_error(c) == PIF_E_INVALID);
  return NULL;
}

static const char* nothing_for_connections(void) {
  pif_stat_info info;
  EXPECT(pif_error(NULL) == PIF_E_INVALID && strlen(pif_error_text(NULL)) > 0);
  EXPECT(pif_mkdir(NULL, "/a", 0) == -PIF_E_INVALID && pif_remove(NULL, "/a", 0) == -PIF_E_INVALID);
  EXPECT(pif_rename(NULL, "/a", "/b", 0) == -PIF_E_INVALID && pif_stat(NULL, "/a", &info) == -PIF_E_INVALID);
  EXPECT(pif_list(NULL, "/", count_names, NULL) == -PIF_E_INVALID &&
         pif_stats(NULL, ignore_stats, NULL) == -PIF_E_INVALID);
  EXPECT(pif_create(NULL, "/a", NULL) == NULL && pif_open(NULL, "/a", PIF_READ) == NULL);
  pif_disconnect(NULL);
  return NULL;
}

static const char* nothing_for_files(void) {
  char byte = 0;
  uint32_t length = 0;
  EXPECT(pif_commit(NULL) == -PIF_E_INVALID && pif_abort(NULL) == -PIF_E_INVALID && pif_close(NULL) == -PIF_E_INVALID);
  EXPECT(pif_preallocate(NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_tell(NULL) == 0 && pif_record_length(NULL) == 0 && pif_seek(NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_file_length(NULL, NULL, NULL) == -PIF_E_INVALID && pif_read_many(NULL, NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_read(NULL, &byte, 1, 1) == -PIF_E_INVALID && pif_read_at(NULL, 0, &byte, 1, 1) == -PIF_E_INVALID);
  EXPECT(pif_write(NULL, &byte, 1) == -PIF_E_INVALID && pif_write_at(NULL, 0, &byte, 1) == -PIF_E_INVALID);
  EXPECT(pif_append(NULL, &byte, 1) == -PIF_E_INVALID && pif_read_batch(NULL, &byte, 1, &length, 1) == -PIF_E_INVALID);
  EXPECT(pif_write_batch(NULL, &byte, 1, &length, 1) == -PIF_E_INVALID);
  EXPECT(pif_append_batch(NULL, &byte, 1, &length, 1) == -PIF_E_INVALID);
  EXPECT(pif_start_read(NULL, 0, &byte, 1, 1) == -PIF_E_INVALID &&
         pif_start_write(NULL, 0, &byte, 1) == -PIF_E_INVALID);
  EXPECT(pif_wait(NULL, 1) == -PIF_E_INVALID && pif_is_done(NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_pread(NULL, &byte, 1, 0) == -PIF_E_INVALID && pif_pwrite(NULL, &byte, 1, 0) == -PIF_E_INVALID);
  return NULL;
}

static const char* nothing_for_memory(pif_connection* c) {
  char byte = 0;
  uint32_t length = 0;
  pif_read_request request = {.first = 0, .count = 1, .out = NULL, .out_bytes = 1};
  pif_file* file = pif_create(c, "/memory", NULL);
  EXPECT(file != NULL);
  EXPECT(pif_read(file, NULL, 1, 1) == -PIF_E_INVALID && pif_read_at(file, 0, NULL, 1, 1) == -PIF_E_INVALID);
  EXPECT(pif_read_many(file, NULL, 1) == -PIF_E_INVALID && pif_read_many(file, &request, 1) == -PIF_E_INVALID);
  EXPECT(pif_write(file, NULL, 1) == -PIF_E_INVALID && pif_write_at(file, 0, NULL, 1) == -PIF_E_INVALID);
  EXPECT(strcmp(pif_error_text(c), "NULL was given for \"in\"") == 0);
  EXPECT(pif_append(file, NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_read_batch(file, NULL, 1, &length, 1) == -PIF_E_INVALID &&
         pif_read_batch(file, &byte, 1, NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_write_batch(file, NULL, 1, &length, 1) == -PIF_E_INVALID &&
         pif_write_batch(file, &byte, 1, NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_append_batch(file, NULL, 1, &length, 1) == -PIF_E_INVALID);
  EXPECT(pif_append_batch(file, &byte, 1, NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_start_read(file, 0, NULL, 1, 1) == -PIF_E_INVALID && pif_start_write(file, 0, NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_pread(file, NULL, 1, 0) == -PIF_E_INVALID && pif_pwrite(file, NULL, 1, 0) == -PIF_E_INVALID);
  EXPECT(pif_read_many(file, &request, SIZE_MAX / sizeof request) == -PIF_E_INTERNAL); /* no memory for so many */
  EXPECT(pif_write(file, NULL, 0) == 0 && pif_read_many(file, NULL, 0) == 0);          /* nothing needs no memory */
  EXPECT(pif_file_length(file, NULL, NULL) == 0);
  EXPECT(pif_close(file) == 0);
  return NULL;
}

const char* c_calls_with_null(pif_connection* c) {
  const char* wrong = nothing_for_names(c);
  if (wrong == NULL) wrong = nothing_for_connections();
  if (wrong == NULL) wrong = nothing_for_files();
  if (wrong == NULL) wrong = nothing_for_memory(c);
  return wrong;
}

const char* c_calls(pif_connection* c) {
  EXPECT(pif_mkdir(c, "/d", 0) == 0);
  EXPECT(pif_mkdir(c, "/d", 0) == -PIF_E_EXISTS);
  const char* wrong = fixed_records(c);
  if (wrong == NULL) wrong = variable_records(c);
  if (wrong == NULL) wrong = names(c);
  if (wrong == NULL) wrong = dropped_files(c);
  if (wrong == NULL) wrong = counters(c);
  return wrong;
}
