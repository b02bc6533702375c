/* meaning FILE: what docs/MPIIO.md says, one claim after another, by all ranks. `meaning FILE die` writes a new file,
 * syncs it, and its last process is killed. `meaning FILE lose PROCESS` kills an LFS while it writes. Exit code 1: a
 * claim does not hold. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static const char* path;

#define NEED(holds) need((holds), #holds, __LINE__)
static void need(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "meaning: line %d, rank %d of %d: not so: %s\n", line, rank, size, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int class_of(int code) {
  int out = 0;
  MPI_Error_class(code, &out);
  return out;
}
static MPI_File opened(int amode) {
  MPI_File file = MPI_FILE_NULL;
  NEED(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  return file;
}
static int class_of_open(MPI_Comm comm, const char* name, int amode) {
  MPI_File file = MPI_FILE_NULL;
  const int out = class_of(MPI_File_open(comm, name, amode, MPI_INFO_NULL, &file));
  NEED((out == MPI_SUCCESS) == (file != MPI_FILE_NULL));
  if (out == MPI_SUCCESS) MPI_File_close(&file);
  return out;
}
static MPI_Offset size_of(MPI_File file) {
  MPI_Offset out = -1;
  NEED(MPI_File_get_size(file, &out) == MPI_SUCCESS);
  return out;
}
static void removed(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void nobody_sees_a_new_file_before_it_is_closed(void) {
  MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
  NEED(MPI_File_write_at(file, rank * 4, &rank, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  NEED(MPI_File_sync(file) == MPI_SUCCESS);
  NEED(class_of_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY) == MPI_ERR_NO_SUCH_FILE);
  MPI_Barrier(MPI_COMM_WORLD);
  NEED(MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
  file = opened(MPI_MODE_RDONLY);
  NEED(size_of(file) == size * 4);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
}

static void modes_are_kept(void) {
  int value = 0;
  NEED(class_of_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR) == MPI_ERR_FILE_EXISTS);
  NEED(class_of_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_WRONLY) == MPI_ERR_AMODE);
  NEED(class_of_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_CREATE) == MPI_ERR_AMODE);
  NEED(class_of_open(MPI_COMM_WORLD, "pif:x", MPI_MODE_RDONLY) == MPI_ERR_BAD_FILE);
  NEED(class_of_open(MPI_COMM_WORLD, "pif:/", MPI_MODE_RDONLY) == MPI_ERR_BAD_FILE);
  if (size > 1)
    NEED(class_of_open(MPI_COMM_WORLD, path, rank == 0 ? MPI_MODE_RDONLY : MPI_MODE_RDWR) == MPI_ERR_NOT_SAME);
  MPI_File file = opened(MPI_MODE_RDONLY);
  NEED(class_of(MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_READ_ONLY);
  NEED(class_of(MPI_File_set_size(file, 0)) == MPI_ERR_READ_ONLY);
  MPI_File_close(&file);
  file = opened(MPI_MODE_WRONLY);
  NEED(class_of(MPI_File_read_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_ACCESS);
  MPI_File_close(&file);
  file = opened(MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  NEED(class_of(MPI_File_read_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_UNSUPPORTED_OPERATION);
  NEED(MPI_File_read_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS && value == rank);
  MPI_File_close(&file);
  file = opened(MPI_MODE_RDONLY | MPI_MODE_UNIQUE_OPEN);
  MPI_Barrier(MPI_COMM_WORLD);
  /* By others: a process may have it open twice. */
  if (size > 1) NEED(class_of_open(MPI_COMM_SELF, path, MPI_MODE_RDWR) == MPI_ERR_FILE_IN_USE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_close(&file);
}

static void what_is_left_out_is_refused(void) {
  MPI_File file = opened(MPI_MODE_RDWR);
  MPI_Datatype backwards, twice;
  const int length[2] = {1, 1}, at[2] = {1, 0}, same[2] = {0, 0};
  int flag = 1;
  MPI_Type_indexed(2, length, at, MPI_INT, &backwards);
  MPI_Type_indexed(2, length, same, MPI_INT, &twice);
  MPI_Type_commit(&backwards);
  MPI_Type_commit(&twice);
  NEED(class_of(MPI_File_set_atomicity(file, 1)) == MPI_ERR_UNSUPPORTED_OPERATION);
  NEED(MPI_File_set_atomicity(file, 0) == MPI_SUCCESS && MPI_File_get_atomicity(file, &flag) == MPI_SUCCESS && !flag);
  NEED(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL)) ==
       MPI_ERR_UNSUPPORTED_DATAREP);
  NEED(class_of(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  NEED(class_of(MPI_File_set_view(file, 0, MPI_INT, twice, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  NEED(class_of(MPI_File_set_view(file, -8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  NEED(class_of(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  NEED(class_of(MPI_File_read_at(file, -1, &flag, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  NEED(class_of(MPI_File_read_at(file, 0, &flag, -1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_COUNT);
  NEED(class_of(MPI_File_read_all_end(file, &flag, MPI_STATUS_IGNORE)) == MPI_ERR_OTHER);
  MPI_Type_free(&backwards);
  MPI_Type_free(&twice);
  MPI_File_close(&file);
}

static void the_handle_is_the_mpis_own(void) {
  MPI_File file = opened(MPI_MODE_RDWR);
  MPI_Group group;
  MPI_Datatype etype, filetype;
  MPI_Offset displacement = 0;
  char datarep[MPI_MAX_DATAREP_STRING];
  int members = 0, amode = 0;
  NEED(MPI_File_f2c(MPI_File_c2f(file)) == file);
  NEED(MPI_File_get_group(file, &group) == MPI_SUCCESS);
  MPI_Group_size(group, &members);
  MPI_Group_free(&group);
  NEED(members == size);
  NEED(MPI_File_get_amode(file, &amode) == MPI_SUCCESS && amode == MPI_MODE_RDWR);
  NEED(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "internal", MPI_INFO_NULL) == MPI_SUCCESS);
  NEED(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep) == MPI_SUCCESS);
  NEED(displacement == 8 && etype == MPI_INT && strcmp(datarep, "internal") == 0);
  MPI_File_close(&file);
}

/* Every rank's records, one after another, in any order; each of them once. */
static void the_shared_pointer_gives_each_place_once(void) {
  enum { RECORDS = 50 };
  removed();
  MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int i = 0; i < RECORDS; ++i) {
    const int record = rank * RECORDS + i;
    NEED(MPI_File_write_shared(file, &record, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
  int* const all = malloc((size_t)(size * RECORDS) * sizeof(int));
  char* const seen = calloc((size_t)(size * RECORDS), 1);
  MPI_Status status;
  int count = 0;
  NEED(size_of(file) == size * RECORDS * (MPI_Offset)sizeof(int));
  NEED(MPI_File_read_at(file, 0, all, size * RECORDS, MPI_INT, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_INT, &count);
  NEED(count == size * RECORDS);
  for (int i = 0; i < size * RECORDS; ++i) {
    NEED(all[i] >= 0 && all[i] < size * RECORDS && !seen[all[i]]);
    seen[all[i]] = 1;
  }
  free(all);
  free(seen);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
}

/* Past the end of a file that is there: ranks' pieces between one another, all at once. */
static void a_committed_file_grows_under_many(void) {
  enum { PIECES = 300, PIECE = 16, CALLS = 100 };
  char piece[PIECES * PIECE];
  MPI_Datatype mine, wide;
  MPI_File file = opened(MPI_MODE_RDWR);
  const MPI_Offset before = size_of(file);
  MPI_Type_vector(PIECES / CALLS, PIECE, PIECE * size, MPI_BYTE, &mine);
  MPI_Type_create_resized(mine, 0, (MPI_Aint)PIECE * size * (PIECES / CALLS), &wide);
  MPI_Type_commit(&wide);
  memset(piece, 'a' + rank, sizeof piece);
  MPI_File_set_view(file, before + rank * PIECE, MPI_BYTE, wide, "native", MPI_INFO_NULL);
  for (int i = 0; i < CALLS; ++i)
    NEED(MPI_File_write(file, piece, PIECES / CALLS * PIECE, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
  file = opened(MPI_MODE_RDONLY);
  NEED(size_of(file) == before + (MPI_Offset)size * PIECES * PIECE);
  for (int i = 0; i < PIECES * size; ++i) {
    NEED(MPI_File_read_at(file, before + (MPI_Offset)i * PIECE, piece, PIECE, MPI_BYTE, MPI_STATUS_IGNORE) ==
         MPI_SUCCESS);
    NEED(piece[0] == 'a' + i % size && piece[PIECE - 1] == 'a' + i % size);
  }
  MPI_File_close(&file);
  MPI_Type_free(&mine);
  MPI_Type_free(&wide);
}

/* What is cut is cut for this job at once, and for all others when it is closed. */
static void a_shorter_file_replaces_the_old_one_at_its_close(void) {
  MPI_File file = opened(MPI_MODE_RDWR), other = MPI_FILE_NULL;
  const MPI_Offset before = size_of(file);
  NEED(before > 100 && MPI_File_set_size(file, 100) == MPI_SUCCESS && size_of(file) == 100);
  NEED(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &other) == MPI_SUCCESS);
  NEED(size_of(other) == before);
  MPI_File_close(&other);
  MPI_Barrier(MPI_COMM_WORLD);
  NEED(MPI_File_set_size(file, 200) == MPI_SUCCESS);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
  file = opened(MPI_MODE_RDONLY);
  char bytes[200];
  NEED(size_of(file) == 200);
  NEED(MPI_File_read_at(file, 0, bytes, 200, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  int zeros = 0;
  for (int i = 100; i < 200; ++i) zeros += bytes[i] == 0;
  NEED(zeros == 100 && (bytes[1] | bytes[4] | bytes[8]) != 0);
  MPI_File_close(&file);
}

static void delete_on_close_leaves_nothing(void) {
  MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
  NEED(class_of_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY) == MPI_ERR_NO_SUCH_FILE);
  file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  NEED(MPI_File_write_at(file, 0, &rank, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
  NEED(class_of_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY) == MPI_ERR_NO_SUCH_FILE);
  if (rank == 0) NEED(class_of(MPI_File_delete(path, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
}

static void hints_shape_a_new_file(void) {
  char value[64] = "";
  int is_there = 0;
  MPI_File file;
  MPI_Info hints, known;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "striping_unit", "8192");
  MPI_Info_set(hints, "striping_factor", "2");
  MPI_Info_set(hints, "cb_buffer_size", "1000000");
  NEED(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, hints, &file) == MPI_SUCCESS);
  MPI_Info_free(&hints);
  NEED(MPI_File_get_info(file, &known) == MPI_SUCCESS);
  MPI_Info_get(known, "striping_unit", 63, value, &is_there);
  NEED(is_there && strcmp(value, "8192") == 0);
  MPI_Info_get(known, "striping_factor", 63, value, &is_there);
  NEED(is_there && strcmp(value, "2") == 0);
  MPI_Info_get(known, "cb_buffer_size", 63, value, &is_there);
  NEED(!is_there);
  MPI_Info_free(&known);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
}

/* Of a view of all ints: twice the blocks as one type, and as two items of it. */
static void many_blocks_of_memory(MPI_File file, MPI_Datatype blocks, const int* at, int count) {
  const int extent = at[count - 1] + 1;
  int* const wide = malloc((size_t)(2 * extent) * sizeof(int));
  int* const packed = malloc((size_t)(2 * count) * sizeof(int));
  MPI_Datatype two;
  MPI_Type_contiguous(2, blocks, &two);
  MPI_Type_commit(&two);
  for (int i = 0; i < 2 * extent; ++i) wide[i] = i;
  NEED(MPI_File_write_at(file, 0, wide, 1, two, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  NEED(MPI_File_read_at(file, 0, packed, 2 * count, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < 2 * count; ++i) NEED(packed[i] == i / count * extent + at[i % count]);
  memset(wide, 0xff, (size_t)(2 * extent) * sizeof(int));
  NEED(MPI_File_read_at(file, 0, wide, 2, blocks, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  int others = 0;
  for (int i = 0; i < 2 * extent; ++i) others += wide[i] != i && wide[i] != -1;
  for (int i = 0; i < 2 * count; ++i) NEED(wide[packed[i]] == packed[i]);
  NEED(others == 0);
  MPI_Type_free(&two);
  free(wide);
  free(packed);
}

/* Values of pairs, between whose parts there may be a gap; and more blocks than one message has. */
static void many_blocks_and_pairs_come_back(void) {
  enum { BLOCKS = 20000 };
  struct pair {
    short value;
    int index;
  } out[100], in[100];
  memset(out, 0, sizeof out);
  memset(in, 0, sizeof in);
  for (int i = 0; i < 100; ++i) out[i] = (struct pair){(short)(i + rank), i * 1000};
  MPI_File file = opened(MPI_MODE_RDWR);
  NEED(MPI_File_write_at_all(file, rank * 600, out, 100, MPI_SHORT_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  NEED(MPI_File_read_at_all(file, rank * 600, in, 100, MPI_SHORT_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < 100; ++i) NEED(in[i].value == out[i].value && in[i].index == out[i].index);
  int* const at = malloc(BLOCKS * sizeof(int));
  int* const values = malloc(BLOCKS * sizeof(int));
  MPI_Datatype blocks;
  for (int i = 0; i < BLOCKS; ++i) at[i] = 4 * i + (i * 7) % 3;
  MPI_Type_create_indexed_block(BLOCKS, 1, at, MPI_INT, &blocks);
  MPI_Type_commit(&blocks);
  const MPI_Offset mine = 100000 + (MPI_Offset)rank * 50 * BLOCKS;
  NEED(MPI_File_set_view(file, mine, MPI_INT, blocks, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  for (int i = 0; i < BLOCKS; ++i) values[i] = i ^ rank;
  NEED(MPI_File_write_at_all(file, 0, values, BLOCKS, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int first = 0; first < 2 * BLOCKS; first += 1301) { /* few of the many, and across the end of a tile */
    int some[60];
    for (int i = 0; i < 60; ++i) some[i] = (first + i) ^ rank;
    NEED(MPI_File_write_at(file, first, some, 60, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    memset(some, 0, sizeof some);
    NEED(MPI_File_read_at(file, first, some, 60, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < 60; ++i) NEED(some[i] == ((first + i) ^ rank));
  }
  MPI_File_set_view(file, mine, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  for (int i = 0; i < BLOCKS; i += 997) {
    int one = -1;
    NEED(MPI_File_read_at(file, at[i], &one, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS && one == (i ^ rank));
  }
  many_blocks_of_memory(file, blocks, at, BLOCKS);
  free(at);
  free(values);
  MPI_Type_free(&blocks);
  NEED(MPI_File_close(&file) == MPI_SUCCESS);
}

static int handled;
static void handle(MPI_File* file, int* code, ...) {
  MPI_Offset at = -1;
  ++handled;
  NEED(class_of(*code) == MPI_ERR_ARG);
  NEED(MPI_File_get_position(*file, &at) == MPI_SUCCESS && at == 3); /* it may use the file */
}

static void an_error_handler_is_called(void) {
  MPI_File file = opened(MPI_MODE_RDWR);
  MPI_Errhandler handler;
  MPI_File_create_errhandler(handle, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_File_seek(file, 3, MPI_SEEK_SET);
  NEED(class_of(MPI_File_seek(file, -4, MPI_SEEK_CUR)) == MPI_ERR_ARG && handled == 1);
  NEED(class_of(MPI_File_write_at(file, -1, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_ARG && handled == 2);
  MPI_Errhandler_free(&handler);
  MPI_File_close(&file);
}

static void large_counts_have_functions_of_their_own(void) {
#if MPI_VERSION >= 4
  MPI_File file = opened(MPI_MODE_RDWR);
  MPI_Status status;
  MPI_Count count = 0;
  int value = 4711 + rank, back = 0;
  NEED(MPI_File_write_at_all_c(file, rank * 4, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
  NEED(MPI_File_read_at_all_c(file, rank * 4, &back, 1, MPI_INT, &status) == MPI_SUCCESS && back == value);
  NEED(MPI_Get_count_c(&status, MPI_INT, &count) == MPI_SUCCESS && count == 1);
  MPI_File_close(&file);
#endif
}

/* The LFS with this process id ends in the middle: all processes are told, and nobody sees a part of the file. */
static void lose(const char* process) {
  static char bytes[1 << 20];
  MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
  NEED(MPI_File_write_at_all(file, rank * (1 << 20), bytes, 1 << 20, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) NEED(kill((pid_t)atoi(process), SIGKILL) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_write_at_all(file, (rank + size) * (1 << 20), bytes, 1 << 20, MPI_BYTE, MPI_STATUS_IGNORE);
  NEED(class_of(MPI_File_close(&file)) == MPI_ERR_IO && file == MPI_FILE_NULL);
}

static void die(void) {
  MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
  NEED(MPI_File_write_at(file, rank * 4, &rank, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  NEED(MPI_File_sync(file) == MPI_SUCCESS);
  printf("wrote\n");
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) raise(SIGKILL);
  MPI_File_close(&file); /* which waits for all */
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2) return 2;
  path = argv[1];
  if (argc == 3) die();
  if (argc == 4) lose(argv[3]);
  if (argc == 4) return MPI_Finalize();
  removed();
  nobody_sees_a_new_file_before_it_is_closed();
  modes_are_kept();
  what_is_left_out_is_refused();
  the_handle_is_the_mpis_own();
  the_shared_pointer_gives_each_place_once();
  a_committed_file_grows_under_many();
  a_shorter_file_replaces_the_old_one_at_its_close();
  delete_on_close_leaves_nothing();
  hints_shape_a_new_file();
  many_blocks_and_pairs_come_back();
  an_error_handler_is_called();
  large_counts_have_functions_of_their_own();
  MPI_Finalize();
  return 0;
}
