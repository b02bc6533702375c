#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "c_calls.h"

#define TEXT_OF(x) #x
#define LINE_OF(x) TEXT_OF(x)
#define EXPECT(condition) \
  if (!(condition)) return "line " LINE_OF(__LINE__) ": " #condition

enum { kBytes = 300000 };

/* A nameless file of that content, at its beginning. */
static FILE* file_of(const unsigned char* bytes, size_t size) {
  FILE* file = tmpfile();
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fflush(file) != 0) return NULL;
  rewind(file);
  return file;
}

static const char* moves(pif_connection* c, const unsigned char* in, unsigned char* out) {
  const pif_attribute attributes[2] = {{"made-by", "c"}, {"empty", ""}};
  const uint32_t nodes[2] = {3, 1};
  const pif_create_options options = {
      .record_length = 1000, .nodes = nodes, .node_count = 2, .attributes = attributes, .attribute_count = 2};
  FILE* from = file_of(in, kBytes);
  EXPECT(from != NULL);
  EXPECT(pif_put(c, fileno(from), "/whole", &options) == kBytes);
  EXPECT(pif_put(c, -1, "/none", &options) < 0);
  EXPECT(pif_open(c, "/none", PIF_READ) == NULL && pif_error(c) == PIF_E_NOT_FOUND);
  FILE* to = tmpfile();
  EXPECT(to != NULL);
  EXPECT(pif_get(c, "/whole", fileno(to)) == kBytes);
  EXPECT(pread(fileno(to), out, kBytes, 0) == kBytes && memcmp(in, out, kBytes) == 0);
  EXPECT(pif_get(c, "/none", fileno(to)) == -PIF_E_NOT_FOUND);
  rewind(from);
  pif_file* file = pif_create(c, "/twice", NULL);
  EXPECT(pif_import(file, fileno(from)) == kBytes && pif_commit(file) == 0 && pif_close(file) == 0);
  file = pif_open(c, "/twice", PIF_READ);
  EXPECT(ftruncate(fileno(to), 0) == 0);
  EXPECT(pif_export(file, fileno(to)) == kBytes && pif_close(file) == 0);
  fclose(from);
  fclose(to);
  return NULL;
}

/* What was said, one behind the other. */
struct said {
  char text[200];
  size_t length;
};

static void say(struct said* said, const char* first, const char* second) {
  const int n = snprintf(said->text + said->length, sizeof said->text - said->length, "%s=%s ", first, second);
  if (n > 0) said->length += (size_t)n;
}

static int note_attribute(void* user, const char* name, const char* value) {
  say(user, name, value);
  return strcmp(name, "stop") == 0;
}

static const char* tells(pif_connection* c) {
  pif_file* file = pif_open(c, "/whole", PIF_READ);
  uint32_t nodes[4] = {0}, sizes[4] = {9, 9, 9, 9};
  EXPECT(pif_nodes(file, nodes, 4) == 2 && nodes[0] == 3 && nodes[1] == 1);
  nodes[1] = 7;
  EXPECT(pif_nodes(file, nodes, 1) == 2 && nodes[1] == 7); /* there was no room */
  EXPECT(pif_nodes(file, NULL, 0) == 2 && pif_nodes(file, NULL, 1) == -PIF_E_INVALID);
  EXPECT(pif_bevies(file, sizes, 4) == 0 && sizes[0] == 9);
  pif_place place;
  EXPECT(pif_locate(file, 5, &place) == 0 && place.lfs == 1 && place.node == 1 && place.row == 2);
  struct said said = {"", 0};
  EXPECT(pif_attributes(file, note_attribute, &said) == 0 && strcmp(said.text, "empty= made-by=c ") == 0);
  EXPECT(pif_close(file) == 0);
  return NULL;
}

static int note_node(void* user, const pif_node_info* node) {
  say(user, node->name, node->state);
  return node->id == 2;
}

static const char* refuses(pif_connection* c) {
  const pif_attribute nameless = {NULL, "x"};
  const pif_create_options bad = {.attributes = &nameless, .attribute_count = 1};
  const pif_create_options none = {.attribute_count = 1};
  EXPECT(pif_create(c, "/bad", &bad) == NULL && pif_error(c) == PIF_E_INVALID);
  EXPECT(pif_create(c, "/bad", &none) == NULL && pif_error(c) == PIF_E_INVALID);
  EXPECT(pif_put(c, 0, NULL, NULL) == -PIF_E_INVALID && pif_get(c, NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_put(NULL, 0, "/f", NULL) == -PIF_E_INVALID && pif_get(NULL, "/f", 0) == -PIF_E_INVALID);
  EXPECT(pif_import(NULL, 0) == -PIF_E_INVALID && pif_export(NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_nodes(NULL, NULL, 0) == -PIF_E_INVALID && pif_bevies(NULL, NULL, 0) == -PIF_E_INVALID);
  EXPECT(pif_locate(NULL, 0, NULL) == -PIF_E_INVALID && pif_attributes(NULL, note_attribute, NULL) == -PIF_E_INVALID);
  EXPECT(pif_list_nodes(c, NULL, NULL) == -PIF_E_INVALID);
  return NULL;
}

const char* c_whole(pif_connection* c) {
  unsigned char* bytes = malloc(2 * kBytes);
  EXPECT(bytes != NULL);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = (unsigned char)(i * 2654435761u >> 16);
  const char* wrong = moves(c, bytes, bytes + kBytes);
  free(bytes);
  if (wrong == NULL) wrong = tells(c);
  if (wrong == NULL) wrong = refuses(c);
  if (wrong != NULL) return wrong;
  struct said said = {"", 0};
  EXPECT(pif_list_nodes(c, note_node, &said) == 0 && strcmp(said.text, "lfs0=up lfs1=up ") == 0);
  return NULL;
}
