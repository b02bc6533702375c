/* Many pieces at once, from C: patterns, Galley's interface, PVFS's partitions, files that several create. */
#include <string.h>

#include "c_calls.h"
#include "pif/client/galley.h"
#include "pif/client/pvfs.h"

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define EXPECT(condition) \
  if (!(condition)) return TEXT_OF(__LINE__) ": " #condition

enum { kBytes = 4000 };

static unsigned char byte_at(size_t i) { return (unsigned char)(i * 7 + i / 251); }

/* A pattern's bytes of "/p", packed into `out`, or a negative code. */
static int64_t read_by(pif_file* file, pif_pattern* pattern, unsigned char* out, size_t bytes) {
  pif_pattern* memory = pif_pattern_range(0, bytes);
  const pif_pieces wanted = {.file = pattern, .memory = memory};
  const int64_t n = pif_read_pieces(file, &wanted, out, bytes);
  pif_pattern_free(memory);
  pif_pattern_free(pattern);
  return n;
}

static const char* builders(pif_file* file) {
  unsigned char out[64];
  EXPECT(read_by(file, pif_pattern_range(5, 9), out, 9) == 9 && out[8] == byte_at(13));
  EXPECT(read_by(file, pif_pattern_strided(100, 2, -10, 3), out, 6) == 6 && out[5] == byte_at(81));
  const pif_stride strides[2] = {{10, 2}, {100, 2}};
  EXPECT(read_by(file, pif_pattern_nested(1, 1, strides, 2), out, 4) == 4 && out[3] == byte_at(111));
  const pif_batch inner[2] = {{.offset = 1, .origin = PIF_PREVIOUS, .quantity = 1, .bytes = 1},
                              {.offset = 2, .origin = PIF_PREVIOUS_END, .quantity = 1, .bytes = 1}};
  const pif_batch outer = {.offset = 50, .quantity = 2, .stride = 20, .inner = inner, .inner_count = 2};
  EXPECT(read_by(file, pif_pattern_batched(&outer, 1), out, 4) == 4);
  EXPECT(out[0] == byte_at(51) && out[1] == byte_at(54) && out[2] == byte_at(71) && out[3] == byte_at(74));
  const pif_piece pieces[2] = {{300, 2}, {7, 1}};
  EXPECT(read_by(file, pif_pattern_list(pieces, 2), out, 3) == 3 && out[1] == byte_at(301) && out[2] == byte_at(7));
  EXPECT(read_by(file, pif_pattern_tiled(pieces, 2, 1000), out, 6) == 6);
  EXPECT(out[0] == byte_at(300) && out[2] == byte_at(7) && out[3] == byte_at(1300) && out[5] == byte_at(1007));
  EXPECT(read_by(file, pif_pattern_partition(10, 2, 20), out, 6) == 6 && out[5] == byte_at(51));
  EXPECT(read_by(file, pif_pattern_member(1, 3, 4, 2), out, 8) == 8);
  EXPECT(out[0] == byte_at(12) && out[4] == byte_at(24));
  pif_pattern* type = pif_pattern_strided(1, 1, 3, 2);
  EXPECT(read_by(file, pif_pattern_view(100, type), out, 3) == 3);
  EXPECT(out[0] == byte_at(101) && out[1] == byte_at(104) && out[2] == byte_at(105));
  pif_pattern_free(type);
  const pif_level leaf = {.offset = 2, .count = 2, .stride = 5, .bytes = 1};
  const pif_level level = {.offset = 10, .count = 2, .stride = 100, .inner = &leaf, .inner_count = 1};
  const int64_t extent = 1000;
  EXPECT(read_by(file, pif_pattern_levels(&level, 1, &extent), out, 5) == 5);
  EXPECT(out[3] == byte_at(117) && out[4] == byte_at(1012));
  return NULL;
}

static const char* bad_patterns(pif_connection* c, pif_file* file) {
  unsigned char out[64];
  EXPECT(read_by(file, pif_pattern_strided(INT64_MAX - 4, 8, 8, 8), out, 8) == -PIF_E_TOO_LARGE);
  EXPECT(read_by(file, pif_pattern_strided(0, 8, INT64_MAX, 8), out, 8) == -PIF_E_TOO_LARGE);
  EXPECT(read_by(file, pif_pattern_strided(0, 8, 8, 0), out, 8) == -PIF_E_INVALID);
  EXPECT(strlen(pif_error_text(c)) > 0);
  EXPECT(read_by(file, pif_pattern_levels(NULL, 0, NULL), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, pif_pattern_range(-1, 8), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, pif_pattern_member(3, 3, 8, 0), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, pif_pattern_list(NULL, 2), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, pif_pattern_tiled(NULL, 2, 9), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, pif_pattern_nested(0, 1, NULL, 2), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, pif_pattern_batched(NULL, 1), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, pif_pattern_view(0, NULL), out, 8) == -PIF_E_INVALID);
  EXPECT(read_by(file, NULL, out, 8) == -PIF_E_INVALID);
  pif_level circle = {.count = 1, .inner_count = 1};
  circle.inner = &circle;
  EXPECT(read_by(file, pif_pattern_levels(&circle, 1, NULL), out, 8) == -PIF_E_TOO_LARGE);
  EXPECT(read_by(file, pif_pattern_range(kBytes - 3, 8), out, 8) == 3); /* past the end */
  EXPECT(read_by(file, pif_pattern_range(kBytes + 3, 8), out, 8) == 0);
  EXPECT(pif_read_pieces(file, NULL, out, 8) == -PIF_E_INVALID);
  EXPECT(pif_read_pieces(NULL, NULL, out, 8) == -PIF_E_INVALID);
  pif_pattern* eight = pif_pattern_range(0, 8);
  const pif_pieces wanted = {.file = eight, .memory = eight};
  EXPECT(pif_read_pieces(file, &wanted, NULL, 8) == -PIF_E_INVALID);
  EXPECT(pif_read_pieces(file, &wanted, out, 7) == -PIF_E_INVALID); /* too little memory */
  EXPECT(pif_write_pieces(file, &wanted, out, 8) == -PIF_E_PERMISSION);
  pif_pattern_free(eight);
  pif_pattern_free(NULL);
  return NULL;
}

static const char* galley_reads(pif_file* file) {
  unsigned char buf[64] = {0};
  EXPECT(gfs_read_strided(file, buf, 10, 2, 100, 4, 3) == 6);
  EXPECT(buf[0] == byte_at(10) && buf[1] == byte_at(11) && buf[2] == 0 && buf[9] == byte_at(211));
  memset(buf, 0, sizeof buf);
  EXPECT(gfs_read_strided(file, buf + 20, 10, 2, 100, -4, 3) == 6); /* memory backwards */
  EXPECT(buf[20] == byte_at(10) && buf[16] == byte_at(110) && buf[12] == byte_at(210));
  EXPECT(gfs_read_strided(file, buf, 210, 2, -100, 2, 3) == 6); /* the file backwards */
  EXPECT(buf[0] == byte_at(210) && buf[4] == byte_at(10));
  const struct gfs_stride strides[2] = {{10, 1, 3}, {100, 8, 2}};
  EXPECT(gfs_read_nested(file, buf, 5, 1, strides, 2) == 6);
  EXPECT(buf[2] == byte_at(25) && buf[8] == byte_at(105) && buf[10] == byte_at(125));
  EXPECT(gfs_read_nested(file, buf, 5, 3, NULL, 0) == 3 && buf[2] == byte_at(7));
  const struct gfs_batch subvec[2] = {
      {.f_off = 1, .m_off = 0, .quant = 2, .f_stride = 10, .m_stride = 1, .sub.size = 1},
      {.f_off = 4, .m_off = 2, .quant = 1, .sub.size = 2}};
  const struct gfs_batch vec[2] = {
      {.f_off = 200, .m_off = 8, .f_absolute = 1, .m_absolute = 1, .quant = 1, .sub.size = 3},
      {.f_off = 100,
       .m_off = 10,
       .sub_vector = 1,
       .quant = 2,
       .f_stride = 50,
       .m_stride = 6,
       .subvec_len = 2,
       .sub.subvec = subvec}};
  EXPECT(gfs_read_batched(file, buf, vec, 2) == 3 + 2 * 4);
  EXPECT(buf[8] == byte_at(200) && buf[18] == byte_at(301) && buf[19] == byte_at(311) && buf[20] == byte_at(305));
  EXPECT(buf[24] == byte_at(351) && buf[27] == byte_at(356));
  const struct gfs_list_entry list[2] = {{.f_off = 900, .m_off = 5, .size = 2}, {.f_off = 3, .m_off = 0, .size = 4}};
  EXPECT(gfs_read_list(file, buf, list, 2) == 6 && buf[6] == byte_at(901) && buf[3] == byte_at(6));
  const int64_t operation = gfs_start_read_strided(file, buf, 20, 2, 100, 4, 3);
  const int64_t second = gfs_start_read_list(file, buf + 30, list, 2);
  EXPECT(operation > 0 && second > 0 && gfs_wait(file, second) == 6 && gfs_wait(file, operation) == 6);
  EXPECT(gfs_test(file, operation) == 1 && buf[9] == byte_at(221) && buf[36] == byte_at(901));
  EXPECT(gfs_wait(file, gfs_start_read_nested(file, buf, 5, 1, strides, 2)) == 6 && buf[10] == byte_at(125));
  EXPECT(gfs_wait(file, gfs_start_read_batched(file, buf, vec, 2)) == 11 && buf[27] == byte_at(356));
  return NULL;
}

static const char* galley_errors(pif_file* file) {
  unsigned char buf[64];
  EXPECT(gfs_read_strided(NULL, buf, 0, 1, 1, 1, 1) == -PIF_E_INVALID);
  EXPECT(gfs_read_strided(file, NULL, 0, 1, 1, 1, 1) == -PIF_E_INVALID);
  EXPECT(gfs_read_strided(file, buf, 0, -1, 1, 1, 1) == -PIF_E_INVALID);
  EXPECT(gfs_read_strided(file, buf, 0, 1, 1, 1, 0) == -PIF_E_INVALID);
  EXPECT(gfs_read_strided(file, buf, 0, 1, 1, INT64_MIN, 2) == -PIF_E_TOO_LARGE);
  EXPECT(gfs_read_nested(file, buf, 0, 1, NULL, 1) == -PIF_E_INVALID);
  EXPECT(gfs_read_nested(file, buf, 0, 1, NULL, -1) == -PIF_E_INVALID);
  EXPECT(gfs_read_batched(file, buf, NULL, 1) == -PIF_E_INVALID);
  EXPECT(gfs_read_list(file, buf, NULL, 1) == -PIF_E_INVALID);
  struct gfs_batch circle = {.sub_vector = 1, .quant = 1, .subvec_len = 1};
  circle.sub.subvec = &circle;
  EXPECT(gfs_read_batched(file, buf, &circle, 1) == -PIF_E_TOO_LARGE);
  return NULL;
}

static const char* partitions(pif_file* file) {
  unsigned char out[16];
  pif_partition partition = {.file = file, .offset = 8, .group_bytes = 4, .stride = 12, .position = 0};
  EXPECT(pif_partition_read(&partition, out, 6) == 6 && out[3] == byte_at(11) && out[5] == byte_at(21));
  EXPECT(pif_partition_read(&partition, out, 3) == 3 && out[0] == byte_at(22) && out[2] == byte_at(32));
  EXPECT(partition.position == 9 && pif_partition_read(&partition, NULL, 0) == 0);
  partition.position = (kBytes - 8) / 12 * 4;
  EXPECT(pif_partition_read(&partition, out, 16) == 4 && pif_partition_read(&partition, out, 16) == 0);
  partition.group_bytes = 0;
  EXPECT(pif_partition_read(&partition, out, 1) == -PIF_E_INVALID && pif_partition_read(NULL, out, 1) < 0);
  return NULL;
}

/* Every fourth piece of the file is written through another interface. */
static void fill(unsigned char* all, unsigned char one[4][kBytes / 4]) {
  for (size_t i = 0; i < kBytes; ++i) all[i] = byte_at(i);
  for (size_t i = 0; i < kBytes; ++i) one[i / 4 % 4][i / 16 * 4 + i % 4] = all[i];
}

const char* c_shares(pif_connection* c, struct c_shared* shared) {
  unsigned char all[kBytes], one[4][kBytes / 4];
  fill(all, one);
  const pif_create_options options = {.record_length = 100};
  pif_file* file = pif_create(c, "/p", &options);
  EXPECT(file != NULL);
  shared->file = file;
  shared->token_bytes = pif_share(file, shared->token, sizeof shared->token);
  EXPECT(shared->token_bytes > 0 && pif_share(file, shared->token, 1) == -PIF_E_TOO_LARGE);
  EXPECT(gfs_write_strided(file, one[0], 0, 4, 16, 4, kBytes / 16) == kBytes / 4);
  pif_pattern* of_file = pif_pattern_member(3, 4, 4, 0);
  pif_pattern* of_memory = pif_pattern_range(0, kBytes / 4);
  const pif_pieces wanted = {.file = of_file, .memory = of_memory};
  EXPECT(pif_wait(file, pif_start_write_pieces(file, &wanted, one[3], sizeof one[3])) == kBytes / 4);
  pif_pattern_free(of_file);
  pif_pattern_free(of_memory);
  EXPECT(pif_share(NULL, shared->token, 1) == -PIF_E_INVALID && pif_join(c, NULL, 1) == NULL && pif_done(NULL) < 0);
  uint64_t counter = 0;
  int64_t before = -1;
  EXPECT(pif_counter_open(file, &counter) == 0 && pif_counter_open(file, NULL) == -PIF_E_INVALID);
  EXPECT(pif_counter_add(c, counter, 5, &before) == 0 && before == 0);
  EXPECT(pif_counter_add(c, counter, -5, &before) == 0 && before == 5);
  EXPECT(pif_counter_add(c, counter, -1, &before) == -PIF_E_INVALID && before == 5);
  EXPECT(pif_counter_add(c, counter, 0, NULL) == -PIF_E_INVALID);
  EXPECT(pif_counter_close(c, counter) == 0 && pif_counter_close(c, counter) == 0);
  EXPECT(pif_counter_add(c, counter, 1, &before) == -PIF_E_NOT_FOUND);
  return NULL;
}

const char* c_joins(pif_connection* c, const struct c_shared* shared) {
  unsigned char all[kBytes], one[4][kBytes / 4];
  fill(all, one);
  EXPECT(pif_join(c, "no token", 8) == NULL && pif_error(c) != PIF_OK);
  pif_file* file = pif_join(c, shared->token, (size_t)shared->token_bytes);
  EXPECT(file != NULL);
  const struct gfs_stride strides[1] = {{16, 4, kBytes / 16}};
  EXPECT(gfs_wait(file, gfs_start_write_nested(file, one[1], 4, 4, strides, 1)) == kBytes / 4);
  pif_partition partition = {.file = file, .offset = 8, .group_bytes = 4, .stride = 16, .position = 0};
  EXPECT(pif_partition_write(&partition, one[2], 100) == 100);
  EXPECT(pif_partition_write(&partition, one[2] + 100, kBytes / 4 - 100) == kBytes / 4 - 100);
  EXPECT(pif_sync(file) == 0);
  EXPECT(pif_commit(file) == -PIF_E_BUSY); /* this member is done then, the other one is not */
  EXPECT(pif_close(file) == 0);
  return NULL;
}

static const char* shared_file(pif_connection* c, pif_file* file) {
  unsigned char all[kBytes], one[4][kBytes / 4], out[kBytes];
  fill(all, one);
  pif_member members[4];
  EXPECT(pif_members(file, members, 1) == 2 && members[0].number == 0 && members[0].state == PIF_WRITING);
  EXPECT(pif_members(file, members, 4) == 2 && members[1].number == 1 && members[1].state == PIF_DONE);
  EXPECT(pif_drop(file, 99) < 0);
  EXPECT(pif_done(file) == 0);
  EXPECT(pif_commit(file) == 0);
  EXPECT(pif_close(file) == 0);
  file = pif_open(c, "/p", PIF_READ);
  EXPECT(file != NULL && pif_pread(file, out, kBytes, 0) == kBytes && memcmp(out, all, kBytes) == 0);
  EXPECT(pif_close(file) == 0);
  return NULL;
}

const char* c_pieces(pif_connection* c, struct c_shared* shared) {
  const char* wrong = shared_file(c, shared->file);
  if (wrong != NULL) return wrong;
  pif_file* file = pif_open(c, "/p", PIF_READ);
  EXPECT(file != NULL);
  wrong = builders(file);
  if (wrong == NULL) wrong = bad_patterns(c, file);
  if (wrong == NULL) wrong = galley_reads(file);
  if (wrong == NULL) wrong = galley_errors(file);
  if (wrong == NULL) wrong = partitions(file);
  EXPECT(pif_close(file) == 0 || wrong != NULL);
  return wrong;
}
