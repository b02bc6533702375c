/* threads FILE: each of several threads of each rank writes and reads records of its own of one file, all at once, by
 * calls that wait and by others, through a datatype that all use at once for the first time; and has a file of its own.
 * The exit code is 1 if something is not as it was written. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, RECORDS = 200, WORDS = 16 };

static int rank, size;
static const char* path;
static MPI_File shared;
static MPI_Datatype gapped; /* every second int of a record's memory */

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "threads: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Offset place(int thread, int record) {
  return (((MPI_Offset)record * size + rank) * THREADS + thread) * WORDS * (MPI_Offset)sizeof(int);
}
static int value(int thread, int record, int word) {
  return ((rank * THREADS + thread) * RECORDS + record) * WORDS + word;
}

static void write_one(int thread, int record) {
  int memory[2 * WORDS] = {0};
  MPI_Request request;
  for (int i = 0; i < WORDS; ++i) memory[2 * i] = value(thread, record, i);
  if (record % 2 == 0) {
    need(MPI_File_write_at(shared, place(thread, record), memory, 1, gapped, MPI_STATUS_IGNORE) == MPI_SUCCESS,
         "write");
  } else {
    need(MPI_File_iwrite_at(shared, place(thread, record), memory, 1, gapped, &request) == MPI_SUCCESS, "iwrite");
    need(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "wait");
  }
}

static void read_one(int thread, int record) {
  int memory[2 * WORDS] = {0};
  need(MPI_File_read_at(shared, place(thread, record), memory, 1, gapped, MPI_STATUS_IGNORE) == MPI_SUCCESS, "read");
  for (int i = 0; i < WORDS; ++i)
    need(memory[2 * i] == value(thread, record, i) && memory[2 * i + 1] == 0, "another value");
}

static void use_own_file(int thread) {
  char name[512];
  MPI_File own;
  int back = 0, mine = rank * THREADS + thread;
  snprintf(name, sizeof name, "%s-%d-%d", path, rank, thread);
  need(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &own) == MPI_SUCCESS,
       "open of its own file");
  need(MPI_File_write(own, &mine, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS, "write of its own file");
  need(MPI_File_read_at(own, 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS && back == mine, "its own file");
  need(MPI_File_close(&own) == MPI_SUCCESS, "close of its own file");
}

static void* work(void* number) {
  const int thread = *(const int*)number;
  for (int i = 0; i < RECORDS; ++i) write_one(thread, i);
  for (int i = 0; i < RECORDS; ++i) read_one(thread, i);
  use_own_file(thread);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0, numbers[THREADS];
  pthread_t threads[THREADS];
  MPI_Offset bytes = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 2) return 2;
  path = argv[1];
  need(provided == MPI_THREAD_MULTIPLE, "this MPI has no MPI_THREAD_MULTIPLE");
  MPI_Type_vector(WORDS, 1, 2, MPI_INT, &gapped);
  MPI_Type_commit(&gapped);
  need(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &shared) == MPI_SUCCESS,
       "open");
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    need(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0, "pthread_create");
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  need(MPI_File_get_size(shared, &bytes) == MPI_SUCCESS, "get_size");
  need(bytes == (MPI_Offset)RECORDS * size * THREADS * WORDS * (MPI_Offset)sizeof(int), "another size");
  need(MPI_File_close(&shared) == MPI_SUCCESS, "close");
  MPI_Type_free(&gapped);
  MPI_Finalize();
  return 0;
}
