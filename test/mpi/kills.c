/* kills FILE CALLS: all ranks write a new file by CALLS collective calls, pieces between one another's, and close it.
 * Each says its process id before. The byte at `at` is (at * 31 + at / 4096) % 256. The exit code is 1 if a call has an
 * error: then all ranks know of it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 1000, PIECES = 64 };

int main(int argc, char** argv) {
  static unsigned char memory[PIECE * PIECES];
  int rank = 0, size = 1, failed = 0, worst = 0;
  MPI_File file;
  MPI_Datatype every, piece;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3) return 2;
  printf("process %d\n", (int)getpid());
  fflush(stdout);
  MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * size, &every);
  MPI_Type_commit(&every);
  failed = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_File_set_view(file, (MPI_Offset)PIECE * rank, MPI_BYTE, every, "native", MPI_INFO_NULL);
  for (int call = 0; call < atoi(argv[2]); ++call) {
    for (int i = 0; i < PIECE * PIECES; ++i) {
      const long at = (((long)call * PIECES + i / PIECE) * size + rank) * PIECE + i % PIECE;
      memory[i] = (unsigned char)(at * 31 + at / 4096);
    }
    const int code = MPI_File_write_all(file, memory, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE);
    const int mine = code != MPI_SUCCESS;
    MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (worst != 0 && worst != size) {
      printf("rank %d: %d of %d know of an error\n", rank, worst, size);
      fflush(stdout);
    }
    failed |= code;
  }
  failed |= MPI_File_close(&file);
  MPI_Type_free(&piece);
  MPI_Type_free(&every);
  MPI_Finalize();
  return failed != 0;
}
