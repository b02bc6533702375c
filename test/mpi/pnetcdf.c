/* pnetcdf FILE: all ranks make a netCDF file of one variable, open it again, and read everything back. The exit code is
 * 1 if something is not as it was written. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

enum { ROWS = 32, COLUMNS = 500 };

static int rank, size;
static int values[ROWS * COLUMNS];

static void need(int error, const char* what) {
  if (error == NC_NOERR) return;
  fprintf(stderr, "pnetcdf: rank %d: %s: %s\n", rank, what, ncmpi_strerror(error));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  int file, dimensions[2], variable;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 2) return 2;
  const MPI_Offset start[2] = {(MPI_Offset)rank * ROWS, 0}, count[2] = {ROWS, COLUMNS};
  need(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
  need(ncmpi_def_dim(file, "row", (MPI_Offset)ROWS * size, &dimensions[0]), "def_dim");
  need(ncmpi_def_dim(file, "column", COLUMNS, &dimensions[1]), "def_dim");
  need(ncmpi_def_var(file, "value", NC_INT, 2, dimensions, &variable), "def_var");
  need(ncmpi_enddef(file), "enddef");
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = rank * ROWS * COLUMNS + i;
  need(ncmpi_put_vara_int_all(file, variable, start, count, values), "put");
  need(ncmpi_close(file), "close");
  need(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file), "open");
  need(ncmpi_inq_varid(file, "value", &variable), "inq_varid");
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = 0;
  need(ncmpi_get_vara_int_all(file, variable, start, count, values), "get");
  for (int i = 0; i < ROWS * COLUMNS; ++i)
    if (values[i] != rank * ROWS * COLUMNS + i) need(NC_EINVAL, "another value");
  need(ncmpi_close(file), "close");
  MPI_Finalize();
  return 0;
}
