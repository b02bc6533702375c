/* pif-romio FILE write|read independent|large|collective BYTES: the processes of an MPI job write a file in interleaved
 * pieces of 64 bytes through ROMIO, until it is durable, or read it and check every byte. The last line of what it says
 * is how many seconds that took. independent: data sieving, as ROMIO has it by default, also for writing; large: with
 * larger buffers. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPiece = 64, kSeed = 4 };

/* contents.cc has the same. */
static uint64_t word_at(uint64_t index) {
  uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)kSeed * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 32;
}

/* Word `word` of the pieces of one of `size` processes is so in the file. */
static uint64_t wanted(int rank, int size, uint64_t word) {
  const uint64_t piece = word / (kPiece / 8) * (uint64_t)size + (uint64_t)rank;
  return word_at(piece * (kPiece / 8) + word % (kPiece / 8));
}

static void need(int error, const char* what) {
  if (error == MPI_SUCCESS) return;
  fprintf(stderr, "%s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static MPI_Info hints_of(const char* mode) {
  MPI_Info info;
  MPI_Info_create(&info);
  const char* sieving = strcmp(mode, "collective") == 0 ? "automatic" : "enable";
  MPI_Info_set(info, "romio_ds_write", sieving);
  MPI_Info_set(info, "romio_ds_read", sieving);
  if (strcmp(mode, "collective") == 0) {
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
  }
  if (strcmp(mode, "large") == 0) {
    MPI_Info_set(info, "ind_wr_buffer_size", "16777216");
    MPI_Info_set(info, "ind_rd_buffer_size", "16777216");
  }
  return info;
}

/* Every size-th piece, this process's. */
static void set_view(MPI_File file, int rank, int size, MPI_Datatype* piece) {
  MPI_Datatype every;
  MPI_Type_contiguous(kPiece, MPI_BYTE, piece);
  MPI_Type_commit(piece);
  MPI_Type_create_resized(*piece, 0, (MPI_Aint)kPiece * size, &every);
  MPI_Type_commit(&every);
  need(MPI_File_set_view(file, (MPI_Offset)kPiece * rank, *piece, every, "native", MPI_INFO_NULL), "set_view");
  MPI_Type_free(&every);
}

static void move(MPI_File file, int writes, int collective, void* memory, int count, MPI_Datatype piece) {
  if (writes && collective) need(MPI_File_write_at_all(file, 0, memory, count, piece, MPI_STATUS_IGNORE), "write");
  if (writes && !collective) need(MPI_File_write_at(file, 0, memory, count, piece, MPI_STATUS_IGNORE), "write");
  if (!writes && collective) need(MPI_File_read_at_all(file, 0, memory, count, piece, MPI_STATUS_IGNORE), "read");
  if (!writes && !collective) need(MPI_File_read_at(file, 0, memory, count, piece, MPI_STATUS_IGNORE), "read");
  if (writes) need(MPI_File_sync(file), "sync");
}

int main(int argc, char** argv) {
  int rank = 0, size = 1;
  MPI_File file;
  MPI_Datatype piece;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const int writes = strcmp(argv[2], "write") == 0, collective = strcmp(argv[3], "collective") == 0;
  const uint64_t words = strtoull(argv[4], NULL, 10) / (uint64_t)size / 8;
  uint64_t* memory = malloc(words * 8);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  for (uint64_t i = 0; i < words; ++i) memory[i] = writes ? wanted(rank, size, i) : 0;
  const int mode = writes ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
  need(MPI_File_open(MPI_COMM_WORLD, argv[1], mode, hints_of(argv[3]), &file), "open");
  set_view(file, rank, size, &piece);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  move(file, writes, collective, memory, (int)(words * 8 / kPiece), piece);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - begin;
  for (uint64_t i = 0; i < words; ++i)
    if (memory[i] != wanted(rank, size, i)) need(MPI_ERR_OTHER, "comparing what was read");
  need(MPI_File_close(&file), "close");
  MPI_Type_free(&piece);
  if (rank == 0) printf("%.6f\n", seconds);
  MPI_Finalize();
  return 0;
}
