/* twin LOCAL PIF FIRST COUNT STEPS: one random program, run twice: on a file of the MPI's own and on one of PIF, in one
 * job. Both must give the same bytes, counts, positions and classes of errors. COUNT programs of STEPS steps, with
 * seeds from FIRST on. A difference is three lines, and the exit code is 1. */
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPAN = 192, MEMORY = 1 << 15, LINES = 4096, LINE = 160 };

static int rank, size, steps;
static unsigned char memory[MEMORY];

/* ---- chance: one stream that all ranks have in common, one of each rank's own ---- */

typedef struct chance {
  uint64_t state;
} chance;

static uint64_t next(chance* c) {
  c->state += 0x9e3779b97f4a7c15u;
  uint64_t z = c->state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static int below(chance* c, int n) { return (int)(next(c) % (uint64_t)n); }

/* ---- what one run has seen ---- */

typedef struct run {
  const char* path;
  MPI_File file;
  int is_open, may_read, may_write;
  chance common, own;
  MPI_Datatype filetype;
  int is_dense; /* the view has all bytes: reads may pass the end of the file */
  int etype_bytes;
  int step;
  int lines;
  char (*log)[LINE];
} run;

static void say(run* r, const char* format, ...) {
  if (r->lines >= LINES) return;
  va_list all;
  va_start(all, format);
  const int used = snprintf(r->log[r->lines], LINE, "step %d: ", r->step);
  vsnprintf(r->log[r->lines] + used, (size_t)(LINE - used), format, all);
  va_end(all);
  ++r->lines;
}

static int class_of(int code) {
  int out = 0;
  MPI_Error_class(code, &out);
  return out;
}

static uint64_t digest(const unsigned char* bytes, size_t count) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < count; ++i) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}

/* ---- datatypes ---- */

/* Any type of `unit`s whose bytes lie in SPAN bytes, in ascending order. */
static MPI_Datatype any_type(chance* c, MPI_Datatype unit, int unit_bytes) {
  MPI_Datatype out = MPI_DATATYPE_NULL;
  const int room = SPAN / unit_bytes; /* at least 24 */
  switch (below(c, 8)) {
    case 0: MPI_Type_contiguous(1 + below(c, room), unit, &out); break;
    case 1: {
      const int length = 1 + below(c, 3);
      MPI_Type_vector(1 + below(c, 4), length, length + below(c, 3), unit, &out);
      break;
    }
    case 2: {
      int lengths[4], at[4], where = 0;
      const int n = 1 + below(c, 4);
      for (int i = 0; i < n; ++i) {
        at[i] = where + below(c, 3);
        lengths[i] = 1 + below(c, 3);
        where = at[i] + lengths[i];
      }
      MPI_Type_indexed(n, lengths, at, unit, &out);
      break;
    }
    case 3: {
      const int sizes[3] = {2, 3, 4}, parts[3] = {1 + below(c, 2), 1 + below(c, 3), 1 + below(c, 4)};
      const int starts[3] = {below(c, 3 - parts[0]), below(c, 4 - parts[1]), below(c, 5 - parts[2])};
      MPI_Type_create_subarray(3, sizes, parts, starts, below(c, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, unit, &out);
      break;
    }
    case 4: {
      const int sizes[2] = {4, 6}, processes[2] = {2, 1 + below(c, 2)};
      const int kinds[2] = {below(c, 2) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
      const int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 1 + below(c, 2)};
      const int n = processes[0] * processes[1];
      MPI_Type_create_darray(n, below(c, n), 2, sizes, kinds, arguments, processes,
                             below(c, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, unit, &out);
      break;
    }
    case 5: {
      MPI_Datatype inner, parts[2];
      MPI_Type_vector(2, 1, 2, unit, &inner);
      parts[0] = unit;
      parts[1] = inner;
      const int lengths[2] = {1 + below(c, 2), 1 + below(c, 2)};
      const MPI_Aint at[2] = {0, (MPI_Aint)unit_bytes * (2 + below(c, 4))};
      MPI_Type_create_struct(2, lengths, at, parts, &out);
      MPI_Type_free(&inner);
      break;
    }
    case 6: {
      MPI_Datatype inner, narrow;
      MPI_Type_contiguous(2, unit, &inner);
      MPI_Type_create_resized(inner, 0, (MPI_Aint)unit_bytes * (2 + below(c, 2)), &narrow);
      MPI_Type_create_hvector(3, 1, (MPI_Aint)unit_bytes * (3 + below(c, 3)), narrow, &out);
      MPI_Type_free(&inner);
      MPI_Type_free(&narrow);
      break;
    }
    default: {
      const MPI_Aint at[3] = {(MPI_Aint)unit_bytes * below(c, 2), (MPI_Aint)unit_bytes * 4, (MPI_Aint)unit_bytes * 8};
      MPI_Type_create_hindexed_block(3, 1 + below(c, 3), at, unit, &out);
    }
  }
  MPI_Type_commit(&out);
  return out;
}

static MPI_Datatype unit_of(chance* c, int* bytes) {
  const MPI_Datatype units[3] = {MPI_BYTE, MPI_INT, MPI_DOUBLE};
  const int i = below(c, 3);
  MPI_Type_size(units[i], bytes);
  return units[i];
}

/* ---- steps; each is the same for all ranks, with numbers of their own ---- */

/* Bytes of different ranks never meet: each has SPAN of every size * SPAN bytes. */
static void set_view(run* r) {
  MPI_Datatype etype = unit_of(&r->common, &r->etype_bytes), part, tile;
  const MPI_Offset begin = (MPI_Offset)below(&r->common, 100) * 8;
  if (r->filetype != MPI_BYTE) MPI_Type_free(&r->filetype);
  r->filetype = MPI_BYTE;
  r->is_dense = below(&r->common, 4) == 0;
  if (r->is_dense) {
    say(r, "set_view of all: %d", class_of(MPI_File_set_view(r->file, begin, etype, etype, "native", MPI_INFO_NULL)));
    return;
  }
  part = any_type(&r->common, etype, r->etype_bytes);
  MPI_Type_create_resized(part, 0, (MPI_Aint)SPAN * size, &tile);
  MPI_Type_commit(&tile);
  MPI_Type_free(&part);
  r->filetype = tile;
  const int code = MPI_File_set_view(r->file, begin + (MPI_Offset)SPAN * rank, etype, tile, "native", MPI_INFO_NULL);
  say(r, "set_view: %d", class_of(code));
}

static void settle(run* r) {
  if (r->may_write) MPI_File_sync(r->file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (r->may_write) MPI_File_sync(r->file);
}

/* Whether a read of so many bytes ends inside the file. Past its end MPIs differ in what they say of views with gaps,
 * and of such memory. */
static int is_inside(run* r, MPI_Offset offset, int bytes) {
  MPI_Offset length = 0, last = 0;
  MPI_File_get_size(r->file, &length);
  if (bytes == 0) return 1;
  MPI_File_get_byte_offset(r->file, offset + bytes / r->etype_bytes - 1, &last);
  return last + r->etype_bytes <= length;
}

typedef struct transfer {
  int writes, pointer, form, count, bytes;
  MPI_Offset at;
  MPI_Datatype type;
} transfer;

static int call(run* r, const transfer* t, MPI_Status* status) {
  MPI_File f = r->file;
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  unsigned char* const m = memory;
  const int n = t->count;
  const MPI_Datatype d = t->type;
  int form = t->form;
#ifdef OPEN_MPI /* its ROMIO has no collective ones that do not wait */
  if (t->pointer < 2 && form == 3 && strncmp(r->path, "pif:", 4) != 0) form = 1;
#endif
  switch (t->pointer * 10 + form * 2 + t->writes) {
    case 0: return MPI_File_read_at(f, t->at, m, n, d, status);
    case 1: return MPI_File_write_at(f, t->at, m, n, d, status);
    case 2: return MPI_File_read_at_all(f, t->at, m, n, d, status);
    case 3: return MPI_File_write_at_all(f, t->at, m, n, d, status);
    case 4: code = MPI_File_iread_at(f, t->at, m, n, d, &request); break;
    case 5: code = MPI_File_iwrite_at(f, t->at, m, n, d, &request); break;
    case 6: code = MPI_File_iread_at_all(f, t->at, m, n, d, &request); break;
    case 7: code = MPI_File_iwrite_at_all(f, t->at, m, n, d, &request); break;
    case 8: code = MPI_File_read_at_all_begin(f, t->at, m, n, d); return MPI_File_read_at_all_end(f, m, status) + code;
    case 9:
      code = MPI_File_write_at_all_begin(f, t->at, m, n, d);
      return MPI_File_write_at_all_end(f, m, status) + code;
    case 10: return MPI_File_read(f, m, n, d, status);
    case 11: return MPI_File_write(f, m, n, d, status);
    case 12: return MPI_File_read_all(f, m, n, d, status);
    case 13: return MPI_File_write_all(f, m, n, d, status);
    case 14: code = MPI_File_iread(f, m, n, d, &request); break;
    case 15: code = MPI_File_iwrite(f, m, n, d, &request); break;
    case 16: code = MPI_File_iread_all(f, m, n, d, &request); break;
    case 17: code = MPI_File_iwrite_all(f, m, n, d, &request); break;
    case 18: code = MPI_File_read_all_begin(f, m, n, d); return MPI_File_read_all_end(f, m, status) + code;
    case 19: code = MPI_File_write_all_begin(f, m, n, d); return MPI_File_write_all_end(f, m, status) + code;
    case 20: return MPI_File_read_ordered(f, m, n, d, status);
    case 21: return MPI_File_write_ordered(f, m, n, d, status);
    case 22: code = MPI_File_read_ordered_begin(f, m, n, d); return MPI_File_read_ordered_end(f, m, status) + code;
    case 23: code = MPI_File_write_ordered_begin(f, m, n, d); return MPI_File_write_ordered_end(f, m, status) + code;
    case 24: return MPI_File_read_shared(f, m, n, d, status);
    case 25: return MPI_File_write_shared(f, m, n, d, status);
    case 26: code = MPI_File_iread_shared(f, m, n, d, &request); break;
    case 27: code = MPI_File_iwrite_shared(f, m, n, d, &request); break;
    default: return MPI_ERR_OTHER;
  }
  return code != MPI_SUCCESS ? code : MPI_Wait(&request, status);
}

static void tell(run* r, const transfer* t, int code, MPI_Status* status, int moved) {
  MPI_Offset own = 0, shared = 0;
  char text[MPI_MAX_ERROR_STRING];
  int text_bytes = 0;
  if (code != MPI_SUCCESS) {
    MPI_Error_string(code, text, &text_bytes);
    fprintf(stderr, "%s: %s\n", r->path, text);
  }
  int count = -1, elements = -1;
  if (code == MPI_SUCCESS && moved && t->bytes > 0) { /* of nothing, Open MPI's ROMIO says what it said before */
    MPI_Get_count(status, t->type, &count);
    MPI_Get_elements(status, MPI_BYTE, &elements);
  }
  settle(r);
  MPI_File_get_position(r->file, &own);
  MPI_File_get_position_shared(r->file, &shared);
  say(r, "%s pointer %d form %d of %d bytes: class %d count %d bytes %d digest %016llx at %lld shared %lld",
      t->writes ? "write" : "read", t->pointer, t->form, t->bytes, class_of(code), count, elements,
      (unsigned long long)(t->writes ? 0 : digest(memory, MEMORY)), (long long)own, (long long)shared);
  MPI_Barrier(MPI_COMM_WORLD); /* before somebody moves the shared pointer again */
}

/* Pointers: 0 given, 1 own, 2 ordered or shared. Of the shared one's forms the last two are for one rank at a time. */
static void move(run* r, int writes) {
  int unit_bytes = 0, type_bytes = 0;
  transfer t = {.writes = writes, .pointer = below(&r->common, 3), .form = below(&r->common, 5)};
  if (t.pointer == 2) t.form = below(&r->common, 4);
  const int alone = t.pointer == 2 && t.form >= 2;
  if (t.pointer == 2 && !r->is_dense) t.pointer = 1; /* a view of each rank's own: the standard wants one of all */
  unit_of(&r->own, &unit_bytes);
  const MPI_Datatype units[9] = {[1] = MPI_BYTE, [4] = MPI_INT, [8] = MPI_DOUBLE};
  t.type = any_type(&r->own, units[r->etype_bytes], r->etype_bytes);
  MPI_Type_size(t.type, &type_bytes);
  t.count = below(&r->own, 6);
  t.bytes = t.count * type_bytes;
  t.at = below(&r->own, 60);
  const int begin = below(&r->common, 40);
  for (int i = 0; i < MEMORY; ++i) memory[i] = writes ? (unsigned char)next(&r->own) : 0xee;
  if (r->is_dense && t.pointer < 2) { /* all ranks have one view: their writes are side by side */
    t.at = (MPI_Offset)(begin + rank * 6 * SPAN);
    if (t.pointer == 1) MPI_File_seek(r->file, t.at, MPI_SEEK_SET);
  } else if (t.pointer == 1) {
    MPI_Offset now = 0;
    MPI_File_get_position(r->file, &now);
    if (now > 4000) MPI_File_seek(r->file, t.at, MPI_SEEK_SET);
  }
  if (!writes) {
    MPI_Offset at = t.at;
    if (t.pointer == 1) MPI_File_get_position(r->file, &at);
    if (t.pointer == 2) MPI_File_get_position_shared(r->file, &at);
    if (!is_inside(r, at, t.pointer == 2 ? size * 6 * SPAN : t.bytes)) t.count = t.bytes = 0;
    if (t.pointer == 2) MPI_Barrier(MPI_COMM_WORLD); /* before one moves the pointer */
  }
  MPI_Status status;
  memset(&status, 0, sizeof status);
  int code = MPI_SUCCESS, moved = !alone || t.pointer != 2 || rank == begin % size;
  if (moved) code = call(r, &t, &status);
  tell(r, &t, code, &status, moved);
  if (t.pointer == 1 && !writes)
    MPI_File_seek(r->file, t.at, MPI_SEEK_SET); /* past the end MPIs differ in where it is */
  MPI_Type_free(&t.type);
}

static void pointers(run* r) {
  const int whences[3] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
  MPI_Offset own = 0, shared = 0, byte = 0;
  const int by = below(&r->own, 50), common_by = below(&r->common, 50);
  int whence = below(&r->common, 3);
  /* Of an end in the middle of an etype, or before the view, ROMIO says what is not in the standard. */
  MPI_File_get_size(r->file, &byte);
  if (r->etype_bytes > 1 || byte < 2000) whence %= 2;
  const int a = MPI_File_seek(r->file, by, whences[whence]);
  MPI_File_get_position(r->file, &own);
  MPI_File_get_byte_offset(r->file, own, &byte);
  const int b = r->is_dense ? MPI_File_seek_shared(r->file, common_by, whences[below(&r->common, 2)]) : MPI_SUCCESS;
  MPI_File_get_position_shared(r->file, &shared);
  MPI_Barrier(MPI_COMM_WORLD);
  say(r, "seek %d: %d, %d: at %lld shared %lld byte %lld", whence, class_of(a), class_of(b), (long long)own,
      (long long)shared, (long long)byte);
  MPI_File_seek(r->file, by, MPI_SEEK_SET);
  if (r->is_dense) MPI_File_seek_shared(r->file, common_by, MPI_SEEK_SET);
}

static void sizes(run* r) {
  MPI_Offset bytes = 0;
  const int kind = below(&r->common, 3), to = below(&r->common, 20000);
  int code = MPI_SUCCESS;
  settle(r);
  if (kind == 0 && r->may_write) code = MPI_File_set_size(r->file, to);
  if (kind == 1 && r->may_write) code = MPI_File_preallocate(r->file, to);
  settle(r);
  MPI_File_get_size(r->file, &bytes);
  say(r, "size %d of %d: class %d now %lld", kind, to, class_of(code), (long long)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Contiguous bytes across the end of the file. */
static void read_past_the_end(run* r) {
  MPI_Offset length = 0;
  int count = -1;
  if (!r->is_dense || !r->may_read) return;
  settle(r);
  MPI_File_get_size(r->file, &length);
  MPI_File_set_view(r->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  r->etype_bytes = 1;
  MPI_Status status;
  memset(memory, 0xee, sizeof memory);
  MPI_File_seek(r->file, below(&r->own, 100) - 50 + (length > 50 ? length : 50), MPI_SEEK_SET);
  const int code = MPI_File_read(r->file, memory, 200, MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  say(r, "read past the end: class %d count %d digest %016llx", class_of(code), count,
      (unsigned long long)digest(memory, 200));
  MPI_Barrier(MPI_COMM_WORLD); /* before somebody makes it longer */
  MPI_File_seek(r->file, 0, MPI_SEEK_SET);
}

static void errors(run* r) {
  MPI_File other = MPI_FILE_NULL;
  MPI_Status status;
  char missing[512];
  snprintf(missing, sizeof missing, "%s.missing", r->path);
  const int kind = below(&r->common, 5);
  int code = MPI_SUCCESS;
  switch (kind) {
    case 0: code = MPI_File_open(MPI_COMM_WORLD, missing, MPI_MODE_RDONLY, MPI_INFO_NULL, &other); break;
    case 1: code = MPI_File_seek(r->file, -100000, MPI_SEEK_SET); break;
    case 2: code = r->may_write ? MPI_SUCCESS : MPI_File_write_at(r->file, 0, memory, 8, MPI_BYTE, &status); break;
    case 3: code = r->may_read ? MPI_SUCCESS : MPI_File_read_at(r->file, 0, memory, 8, MPI_BYTE, &status); break;
    default: code = rank == 0 ? MPI_File_delete(missing, MPI_INFO_NULL) : MPI_SUCCESS;
  }
  const int class = kind == 1 ? code != MPI_SUCCESS : class_of(code); /* of a pointer MPIs have different ones */
  say(r, "error %d: class %d open %d", kind, class, other != MPI_FILE_NULL);
}

static void begin(run* r, int amode) {
  /* Bytes that nobody writes are zero in PIF, and undefined in MPI: ROMIO's sieving leaves there what it has. */
  MPI_Info hints;
  MPI_Info_create(&hints);
  const char* const off[4] = {"romio_ds_write", "romio_ds_read", "romio_cb_write", "romio_cb_read"};
  for (int i = 0; i < 4; ++i) MPI_Info_set(hints, off[i], "disable");
  const int code = MPI_File_open(MPI_COMM_WORLD, r->path, amode, hints, &r->file);
  MPI_Info_free(&hints);
  int in_force = 0;
  r->is_open = code == MPI_SUCCESS;
  r->may_read = (amode & MPI_MODE_WRONLY) == 0;
  r->may_write = (amode & MPI_MODE_RDONLY) == 0;
  r->is_dense = 1;
  r->etype_bytes = 1;
  if (r->is_open) MPI_File_get_amode(r->file, &in_force);
  say(r, "open %d: class %d amode %d", amode, class_of(code), in_force);
}

static void finish(run* r) {
  if (r->is_open) say(r, "close: class %d", class_of(MPI_File_close(&r->file)));
  r->is_open = 0;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void reopen(run* r) {
  const int modes[4] = {MPI_MODE_RDWR, MPI_MODE_RDONLY, MPI_MODE_RDWR | MPI_MODE_CREATE,
                        MPI_MODE_RDWR | MPI_MODE_APPEND};
  finish(r);
  begin(r, modes[below(&r->common, 4)]);
}

static void step(run* r) {
  switch (below(&r->common, 13)) {
    case 0:
    case 1: set_view(r); break;
    case 2: pointers(r); break;
    case 3: sizes(r); break;
    case 4: errors(r); break;
    case 5: reopen(r); break;
    case 12: read_past_the_end(r); break;
    case 6:
    case 7:
    case 8: move(r, 0); break;
    default: move(r, r->may_write);
  }
}

static void go(run* r, const char* path, int seed) {
  memset(memory, 0, sizeof memory);
  *r = (run){.path = path, .filetype = MPI_BYTE, .log = r->log};
  r->common.state = (uint64_t)seed;
  r->own.state = (uint64_t)seed * 1000 + (uint64_t)rank + 1;
  if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  begin(r, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_EXCL);
  for (r->step = 1; r->step <= steps && r->is_open; ++r->step) step(r);
  finish(r);
  begin(r, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_EXCL); /* it is there */
  begin(r, MPI_MODE_RDONLY);
  for (MPI_Offset at = 0, bytes = 0; MPI_File_get_size(r->file, &bytes) == MPI_SUCCESS && at < bytes; at += MEMORY) {
    MPI_Status status;
    const int part = bytes - at < MEMORY ? (int)(bytes - at) : MEMORY;
    MPI_File_read_at_all(r->file, at, memory, part, MPI_BYTE, &status);
    say(r, "bytes from %lld of %lld on: %016llx", (long long)at, (long long)bytes,
        (unsigned long long)digest(memory, (size_t)part));
  }
  finish(r);
  if (r->filetype != MPI_BYTE) MPI_Type_free(&r->filetype);
}

static int differ(const run* a, const run* b, int seed) {
  for (int i = 0; i < a->lines || i < b->lines; ++i) {
    const char* const x = i < a->lines ? a->log[i] : "nothing";
    const char* const y = i < b->lines ? b->log[i] : "nothing";
    if (strcmp(x, y) == 0) continue;
    printf("seed %d, rank %d of %d\n  the MPI: %s\n  PIF:     %s\n", seed, rank, size, x, y);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 6) return 2;
  steps = atoi(argv[5]);
  run a = {.log = calloc(LINES, LINE)}, b = {.log = calloc(LINES, LINE)};
  int wrong = 0, total = 0;
  const int first = atoi(argv[3]), count = atoi(argv[4]);
  for (int seed = first; seed < first + count; ++seed) {
    go(&a, argv[1], seed);
    go(&b, argv[2], seed);
    wrong |= differ(&a, &b, seed);
    total += a.lines;
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("%d programs, %d lines of rank 0\n", count, total);
  free(a.log);
  free(b.log);
  MPI_Finalize();
  return wrong;
}
