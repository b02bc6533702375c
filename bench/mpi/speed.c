/* mpi-speed FILE KIND BYTES: the processes of an MPI job write a file, close it, read it again, and check every word.
 * Rank 0 prints what was timed, one line each: a name, and seconds. To write ends when the file is closed; files are
 * synced before. btio is for 1, 4, 16 or 64 processes.
 *
 *   pieces, pieces-all   64 bytes of each process in turn, in one call: independent, collective
 *   blocks               1 MiB of each process in turn, 1 MiB a call
 *   btio                 the pattern of BTIO, class A: 64^3 points of 5 doubles, cells of a multipartition, 40 times
 *   irregular            a view of a million blocks at irregular distances: set_view, one block, all in one call
 *   open                 a new file */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64, BLOCK = 1 << 20, POINTS = 64, VALUES = 5, GHOST = 2, STEPS = 40, BLOCKS = 1000000, OPENS = 5 };

static int rank, size, collective;
static const char* path;
static uint64_t bytes;

static void need(int error, const char* what) {
  if (error == MPI_SUCCESS) return;
  fprintf(stderr, "mpi-speed: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static double now(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime();
}
static void tell(const char* name, double seconds) {
  if (rank == 0) printf("%s %.6f\n", name, seconds);
}

/* Word `index` of what this process writes. */
static uint64_t word(uint64_t index) {
  uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)(rank + 1) * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  return x * 0x94d049bb133111ebu;
}
static uint64_t* words_of(uint64_t count) {
  uint64_t* const out = malloc(count * 8);
  if (out == NULL) need(MPI_ERR_NO_MEM, "memory is out");
  for (uint64_t i = 0; i < count; ++i) out[i] = word(i);
  return out;
}
static void check(const uint64_t* words, uint64_t count, uint64_t first) {
  for (uint64_t i = 0; i < count; ++i)
    if (words[i] != word(first + i)) need(MPI_ERR_OTHER, "what was read is not what was written");
}

static MPI_File opened(int amode) {
  MPI_File file = MPI_FILE_NULL;
  MPI_Info hints;
  MPI_Info_create(&hints);
  if (getenv("MPI_SPEED_LARGE") != NULL) { /* what ROMIO does best with, if views are not collective */
    MPI_Info_set(hints, "romio_ds_write", "enable");
    MPI_Info_set(hints, "romio_ds_read", "enable");
    MPI_Info_set(hints, "ind_wr_buffer_size", "16777216");
    MPI_Info_set(hints, "ind_rd_buffer_size", "16777216");
  }
  need(MPI_File_open(MPI_COMM_WORLD, path, amode, hints, &file), "open");
  MPI_Info_free(&hints);
  return file;
}
static MPI_File created(void) { return opened(MPI_MODE_CREATE | MPI_MODE_RDWR); }

static void view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype) {
  need(MPI_File_set_view(file, displacement, etype, filetype, "native", MPI_INFO_NULL), "set_view");
}
static void put(MPI_File file, MPI_Offset at, const void* memory, int count, MPI_Datatype type) {
  need(collective ? MPI_File_write_at_all(file, at, memory, count, type, MPI_STATUS_IGNORE)
                  : MPI_File_write_at(file, at, memory, count, type, MPI_STATUS_IGNORE),
       "write");
}
static void get(MPI_File file, MPI_Offset at, void* memory, int count, MPI_Datatype type) {
  need(collective ? MPI_File_read_at_all(file, at, memory, count, type, MPI_STATUS_IGNORE)
                  : MPI_File_read_at(file, at, memory, count, type, MPI_STATUS_IGNORE),
       "read");
}
static void finish(MPI_File* file, int writes) {
  if (writes) need(MPI_File_sync(*file), "sync");
  need(MPI_File_close(file), "close");
}

/* `unit` bytes of each process in turn, `calls` calls. */
static void interleaved(uint64_t unit, uint64_t calls) {
  const uint64_t units = bytes / (uint64_t)size / unit / calls * calls, words = units * unit / 8;
  uint64_t* const memory = words_of(words);
  MPI_Datatype part, every;
  MPI_Type_contiguous((int)unit, MPI_BYTE, &part);
  MPI_Type_create_resized(part, 0, (MPI_Aint)(unit * (uint64_t)size), &every);
  MPI_Type_commit(&part);
  MPI_Type_commit(&every);
  for (int writes = 1; writes >= 0; --writes) {
    MPI_File file = writes ? created() : opened(MPI_MODE_RDONLY);
    view(file, (MPI_Offset)(unit * (uint64_t)rank), part, every);
    if (!writes) memset(memory, 0, words * 8);
    const double begin = now();
    for (uint64_t i = 0; i < calls; ++i) {
      const uint64_t at = units / calls * i;
      if (writes)
        put(file, (MPI_Offset)at, memory + at * unit / 8, (int)(units / calls), part);
      else
        get(file, (MPI_Offset)at, memory + at * unit / 8, (int)(units / calls), part);
    }
    if (writes) finish(&file, 1);
    tell(writes ? "write" : "read", now() - begin);
    if (!writes) finish(&file, 0);
  }
  check(memory, words, 0);
  MPI_Type_free(&part);
  MPI_Type_free(&every);
  free(memory);
}

/* A process has one cell in each slab of z: its own diagonal. In memory a cell has ghost points around it. */
static void cells(int side, MPI_Datatype* in_file, MPI_Datatype* in_memory) {
  const int n = POINTS / side, around = n + 2 * GHOST;
  const int whole[4] = {POINTS, POINTS, POINTS, VALUES}, part[4] = {n, n, n, VALUES};
  const int ghosts[4] = {around, around, around, VALUES}, inside[4] = {GHOST, GHOST, GHOST, 0};
  MPI_Datatype files[64], memories[64];
  MPI_Aint at[64];
  int ones[64];
  for (int c = 0; c < side; ++c) {
    const int x = (rank % side + c) % side, y = (rank / side + side - c) % side;
    const int start[4] = {c * n, y * n, x * n, 0};
    MPI_Type_create_subarray(4, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &files[c]);
    MPI_Type_create_subarray(4, ghosts, part, inside, MPI_ORDER_C, MPI_DOUBLE, &memories[c]);
    at[c] = (MPI_Aint)c * around * around * around * VALUES * 8;
    ones[c] = 1;
  }
  const MPI_Aint zeros[64] = {0};
  MPI_Type_create_struct(side, ones, zeros, files, in_file);
  MPI_Type_create_struct(side, ones, at, memories, in_memory);
  MPI_Type_commit(in_file);
  MPI_Type_commit(in_memory);
  for (int c = 0; c < side; ++c) MPI_Type_free(&files[c]), MPI_Type_free(&memories[c]);
}

static void btio(void) {
  int side = 1;
  while ((side + 1) * (side + 1) <= size) ++side;
  if (side * side != size || POINTS % side != 0) need(MPI_ERR_OTHER, "btio is for 1, 4, 16, 64 processes");
  const uint64_t around = (uint64_t)(POINTS / side + 2 * GHOST);
  const uint64_t words = (uint64_t)side * around * around * around * VALUES;
  uint64_t* const memory = malloc(words * 8);
  uint64_t* const packed = malloc(words * 8);
  MPI_Datatype in_file, in_memory;
  cells(side, &in_file, &in_memory);
  const MPI_Offset each = (MPI_Offset)POINTS * POINTS * POINTS * VALUES / size;
  for (int writes = 1; writes >= 0; --writes) {
    double spent = 0, begin;
    MPI_File file = writes ? created() : opened(MPI_MODE_RDONLY);
    view(file, 0, MPI_DOUBLE, in_file);
    for (int step = 0; step < STEPS; ++step) {
      for (uint64_t i = 0; i < words; ++i) memory[i] = writes ? word((uint64_t)step * words + i) : 0;
      begin = now();
      if (writes)
        put(file, step * each, memory, 1, in_memory);
      else
        get(file, step * each, memory, 1, in_memory);
      spent += now() - begin;
      if (writes) continue;
      int position = 0; /* the ghost points are not in the file */
      MPI_Pack(memory, 1, in_memory, packed, (int)(words * 8), &position, MPI_COMM_SELF);
      const uint64_t first = packed[0];
      for (uint64_t i = 0; i < words; ++i) memory[i] = word((uint64_t)step * words + i);
      position = 0;
      uint64_t* const wanted = malloc(words * 8);
      MPI_Pack(memory, 1, in_memory, wanted, (int)(words * 8), &position, MPI_COMM_SELF);
      if (first != wanted[0] || memcmp(packed, wanted, (size_t)position) != 0) need(MPI_ERR_OTHER, "btio read others");
      free(wanted);
    }
    begin = now();
    finish(&file, writes);
    tell(writes ? "write" : "read", spent + now() - begin);
  }
  MPI_Type_free(&in_file);
  MPI_Type_free(&in_memory);
  free(memory);
  free(packed);
}

static void irregular(void) {
  int* const at = malloc(BLOCKS * sizeof(int));
  uint64_t* const memory = words_of(BLOCKS);
  MPI_Datatype blocks;
  for (int i = 0; i < BLOCKS; ++i) at[i] = 3 * i + (int)(word((uint64_t)i) % 3);
  const MPI_Offset mine = (MPI_Offset)rank * 3 * BLOCKS * 8;
  MPI_File file = created();
  MPI_Type_create_indexed_block(BLOCKS, 1, at, MPI_DOUBLE, &blocks);
  MPI_Type_commit(&blocks);
  double begin = now();
  view(file, mine, MPI_DOUBLE, blocks);
  tell("set_view", now() - begin);
  for (int all = 0; all < 2; ++all) {
    begin = now();
    put(file, 0, memory, all ? BLOCKS : 1, MPI_DOUBLE);
    tell(all ? "write all" : "write first", now() - begin);
  }
  begin = MPI_Wtime();
  for (int i = 0; i < 1000; ++i) put(file, i * 997, memory + i * 997, 1, MPI_DOUBLE);
  tell("write one", (MPI_Wtime() - begin) / 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(memory, 0, BLOCKS * 8);
  begin = now();
  get(file, 0, memory, BLOCKS, MPI_DOUBLE);
  tell("read all", now() - begin);
  check(memory, BLOCKS, 0);
  finish(&file, 1);
  MPI_Type_free(&blocks);
  free(at);
  free(memory);
}

static void opens(void) {
  double spent = 0;
  for (int i = 0; i < OPENS; ++i) {
    const double begin = now();
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    spent += now() - begin;
    finish(&file, 0);
  }
  tell("open", spent / OPENS);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  path = argv[1];
  const char* const kind = argv[2];
  bytes = strtoull(argv[3], NULL, 10);
  collective = strcmp(kind, "pieces-all") == 0 || strcmp(kind, "btio") == 0;
  if (strncmp(kind, "pieces", 6) == 0)
    interleaved(PIECE, 1);
  else if (strcmp(kind, "blocks") == 0)
    interleaved(BLOCK, bytes / (uint64_t)size / BLOCK);
  else if (strcmp(kind, "btio") == 0)
    btio();
  else if (strcmp(kind, "irregular") == 0)
    irregular();
  else
    opens();
  MPI_Finalize();
  return 0;
}
