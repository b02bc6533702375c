#include <stdio.h>
#include <string.h>

#include "c_calls.h"

#define TEXT_OF(x) #x
#define LINE_OF(x) TEXT_OF(x)
#define EXPECT(condition) \
  if (!(condition)) return "line " LINE_OF(__LINE__) ": " #condition

/* What came, one file behind the other; "." between them. */
struct came {
  char text[100];
  size_t length;
  size_t ends_after; /* files */
  size_t files;
};

static int note_file(void* user, size_t index, const void* bytes, size_t size) {
  struct came* came = user;
  came->text[came->length++] = (char)('0' + index);
  if (size > 0) memcpy(came->text + came->length, bytes, size);
  came->length += size;
  came->text[came->length++] = '.';
  came->text[came->length] = '\0';
  return ++came->files == came->ends_after;
}

static const char* puts_and_gets(pif_connection* c) {
  const pif_small_file files[4] = {
      {"/m/a", "one", 3}, {"/none/b", "two", 3}, {"/m/c", NULL, 0}, {"/m/d", "x\ny\nz", 5}};
  int codes[4] = {9, 9, 9, 9};
  EXPECT(pif_mkdir(c, "/m", 0) == 0);
  EXPECT(pif_put_many(c, files, 4, NULL, codes) == 3);
  EXPECT(codes[0] == 0 && codes[1] == -PIF_E_NOT_FOUND && codes[2] == 0 && codes[3] == 0);
  EXPECT(pif_error(c) == PIF_E_NOT_FOUND && strstr(pif_error_text(c), "/none") != NULL);
  const char* const paths[4] = {"/m/d", "/m/none", "/m/a", "/m/c"};
  struct came came = {.ends_after = 9};
  EXPECT(pif_get_many(c, paths, 4, note_file, &came, codes) == 3 && codes[1] == -PIF_E_NOT_FOUND);
  EXPECT(strcmp(came.text, "0x\ny\nz.2one.3.") == 0);
  came = (struct came){.ends_after = 1};
  EXPECT(pif_get_many(c, paths, 4, note_file, &came, NULL) == 3 && strcmp(came.text, "0x\ny\nz.") == 0);
  pif_stat_info infos[4] = {{.bytes = 7}, {.bytes = 7}, {.bytes = 7}, {.bytes = 7}};
  EXPECT(pif_stat_many(c, paths, 4, infos, codes) == 3 && codes[1] == -PIF_E_NOT_FOUND && codes[3] == 0);
  EXPECT(infos[0].bytes == 5 && infos[1].bytes == 7 && infos[2].bytes == 3 && infos[3].bytes == 0);
  EXPECT(pif_remove_many(c, paths, 4, codes) == 3 && codes[0] == 0 && codes[1] == -PIF_E_NOT_FOUND);
  EXPECT(pif_stat_many(c, paths, 4, infos, codes) == 0 && codes[2] == -PIF_E_NOT_FOUND);
  EXPECT(pif_stat_many(c, NULL, 0, NULL, NULL) == 0);
  return NULL;
}

static const char* lines_by_number(pif_connection* c) {
  const pif_create_options lines = {.kind = PIF_DELIMITED, .delimiter = '\n'};
  const pif_create_options variable = {.kind = PIF_VARIABLE};
  const pif_small_file file = {"/m/lines", "a\n\nccc\ndd\nlast", 14};
  EXPECT(pif_put_many(c, &file, 1, &variable, NULL) == 0 && pif_error(c) == PIF_E_INVALID);
  EXPECT(pif_put_many(c, &file, 1, &lines, NULL) == 1);
  pif_file* f = pif_open(c, "/m/lines", PIF_READ);
  const uint64_t numbers[6] = {4, 0, 1, 2, 0, 3}, past[2] = {3, 5}, huge[2] = {UINT64_MAX, 0};
  char out[32];
  uint32_t lengths[6];
  EXPECT(pif_read_lines(f, numbers, 6, out, sizeof out, lengths) == 6);
  EXPECT(memcmp(out, "lasta\n\nccc\na\ndd\n", 16) == 0);
  EXPECT(lengths[0] == 4 && lengths[1] == 2 && lengths[2] == 1 && lengths[3] == 4 && lengths[4] == 2 &&
         lengths[5] == 3);
  EXPECT(pif_read_lines(f, numbers, 6, out, 8, lengths) == 3);
  EXPECT(pif_read_lines(f, numbers, 6, out, 3, lengths) == -PIF_E_TOO_LARGE);
  EXPECT(pif_read_lines(f, past, 2, out, sizeof out, lengths) == -PIF_E_END_OF_FILE);
  EXPECT(pif_read_lines(f, huge, 2, out, sizeof out, lengths) == -PIF_E_END_OF_FILE);
  EXPECT(pif_read_lines(f, NULL, 0, NULL, 0, NULL) == 0);
  EXPECT(pif_resize(f, 1) == -PIF_E_PERMISSION && pif_close(f) == 0);
  f = pif_open(c, "/m/lines", PIF_WRITE);
  EXPECT(pif_resize(f, 1) == -PIF_E_INVALID && pif_close(f) == 0);
  return NULL;
}

static const char* lengths_change(pif_connection* c) {
  char out[64];
  const pif_create_options options = {.record_length = 4};
  pif_file* f = pif_create(c, "/m/f", &options);
  EXPECT(pif_write(f, "0123456789ab", 12) == 0 && pif_resize(f, 6) == 0 && pif_resize(f, 10) == 0);
  EXPECT(pif_commit(f) == 0 && pif_close(f) == 0);
  f = pif_open(c, "/m/f", PIF_READ);
  EXPECT(pif_resize(f, 3) == -PIF_E_PERMISSION && pif_resize(f, 10) == -PIF_E_PERMISSION && pif_close(f) == 0);
  f = pif_open(c, "/m/f", PIF_WRITE);
  EXPECT(pif_append_bytes(f, "xyz", 3) == 10);
  EXPECT(pif_pread(f, out, sizeof out, 0) == 13 && memcmp(out, "012345\0\0\0\0xyz", 13) == 0);
  EXPECT(pif_resize(f, 5) == 0 && pif_pread(f, out, sizeof out, 0) == 5);
  EXPECT(pif_append_bytes(f, "end", 3) == 5 && pif_resize(f, 9) == 0 && pif_resize(f, 9) == 0);
  EXPECT(pif_pread(f, out, sizeof out, 0) == 9 && memcmp(out, "01234end\0", 9) == 0);
  EXPECT(pif_close(f) == 0);
  return NULL;
}

static int note_attribute(void* user, const char* name, const char* value) {
  snprintf(user, 100, "%s=%s", name, value);
  return 0;
}

static const char* attributes_by_path(pif_connection* c) {
  const pif_attribute attribute = {"made-by", "c"};
  const pif_create_options options = {.attributes = &attribute, .attribute_count = 1};
  EXPECT(pif_put_many(c, &(pif_small_file){"/m/named", "x", 1}, 1, &options, NULL) == 1);
  char said[100] = "";
  EXPECT(pif_attributes_of(c, "/m/named", note_attribute, said) == 0 && strcmp(said, "made-by=c") == 0);
  EXPECT(pif_attributes_of(c, "/m/none", note_attribute, said) == -PIF_E_NOT_FOUND);
  const pif_attribute_change change = {.sets_mode = 1, .mode = 0600, .sets_modified = 1, .modified_ns = 1234567890123};
  EXPECT(pif_set_attributes(c, "/m/named", &change) == 0);
  pif_stat_info info;
  EXPECT(pif_stat(c, "/m/named", &info) == 0 && info.mode == 0600 && info.modified_ns == 1234567890123);
  const pif_attribute_change nothing = {.mode = 0777};
  EXPECT(pif_set_attributes(c, "/m/named", &nothing) == 0);
  EXPECT(pif_stat(c, "/m/named", &info) == 0 && info.mode == 0600);
  return NULL;
}

static int stop(void* user) {
  ++*(int*)user;
  return 1;
}

static const char* state_and_waits(pif_connection* c) {
  pif_status_info info;
  EXPECT(pif_status(c, 3, &info) == 0);
  EXPECT(info.nodes == 3 && info.nodes_up == 3 && info.files >= 3 && info.sessions >= 1);
  EXPECT(info.refused != NULL && strlen(info.refused) == 0 && info.name != NULL);
  int asked = 0;
  EXPECT(pif_on_wait(c, stop, &asked) == 0);
  EXPECT(pif_mkdir(c, "/m/x", 0) == -PIF_E_CANCELLED && asked > 0);
  EXPECT(pif_on_wait(c, NULL, NULL) == 0 && pif_mkdir(c, "/m/x", 1) == 0);
  return NULL;
}

static const char* null_is_an_error(pif_connection* c) {
  const char* const paths[2] = {"/m/a", NULL};
  const pif_small_file nameless = {NULL, "x", 1}, empty = {"/m/a", NULL, 1};
  struct came came = {.ends_after = 9};
  pif_stat_info info[2];
  EXPECT(pif_stat_many(c, NULL, 1, info, NULL) == -PIF_E_INVALID && pif_stat_many(c, paths, 1, NULL, NULL) < 0);
  EXPECT(pif_stat_many(c, paths, 2, info, NULL) == -PIF_E_INVALID);
  EXPECT(pif_remove_many(c, paths, 2, NULL) == -PIF_E_INVALID && pif_remove_many(NULL, paths, 1, NULL) < 0);
  EXPECT(pif_put_many(c, &nameless, 1, NULL, NULL) == -PIF_E_INVALID && pif_put_many(c, &empty, 1, NULL, NULL) < 0);
  EXPECT(pif_get_many(c, paths, 1, NULL, NULL, NULL) == -PIF_E_INVALID);
  EXPECT(pif_get_many(c, paths, 2, note_file, &came, NULL) == -PIF_E_INVALID && came.files == 0);
  EXPECT(pif_read_lines(NULL, NULL, 0, NULL, 0, NULL) == -PIF_E_INVALID && pif_append_bytes(NULL, "", 0) < 0);
  EXPECT(pif_attributes_of(c, "/m", NULL, NULL) == -PIF_E_INVALID && pif_set_attributes(c, "/m", NULL) < 0);
  EXPECT(pif_status(c, 0, NULL) == -PIF_E_INVALID && pif_resize(NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_on_wait(NULL, stop, NULL) == -PIF_E_INVALID);
  return NULL;
}

const char* c_many(pif_connection* c) {
  const char* (*const all[])(pif_connection*) = {puts_and_gets,      lines_by_number, lengths_change,
                                                 attributes_by_path, state_and_waits, null_is_an_error};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    const char* wrong = all[i](c);
    if (wrong != NULL) return wrong;
  }
  return NULL;
}
