/* hdf5 FILE: all ranks make an HDF5 file of a contiguous and a chunked dataset, open it again, add a dataset, extend
 * the chunked one, and read everything back. The exit code is 1 if something is not as it was written. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 64, COLUMNS = 1000 };

static int rank, size;
static int values[ROWS * COLUMNS];

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "hdf5: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* This rank's rows, from `first` on, of a dataset with `size` times as many; written or read by all at once. */
static void move(hid_t dataset, hsize_t first, int writes) {
  const hsize_t start[2] = {first + (hsize_t)rank * ROWS, 0}, count[2] = {ROWS, COLUMNS};
  const hid_t in_memory = H5Screate_simple(2, count, NULL), in_file = H5Dget_space(dataset);
  need(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0, "hyperslab");
  const hid_t together = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
  if (writes)
    need(H5Dwrite(dataset, H5T_NATIVE_INT, in_memory, in_file, together, values) >= 0, "H5Dwrite");
  else
    need(H5Dread(dataset, H5T_NATIVE_INT, in_memory, in_file, together, values) >= 0, "H5Dread");
  H5Pclose(together);
  H5Sclose(in_file);
  H5Sclose(in_memory);
}

static void fill(int seed) {
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = seed + rank * ROWS * COLUMNS + i;
}
static void check(int seed) {
  for (int i = 0; i < ROWS * COLUMNS; ++i) need(values[i] == seed + rank * ROWS * COLUMNS + i, "another value");
}

static hid_t make(hid_t file, const char* name, int is_chunked) {
  const hsize_t now[2] = {(hsize_t)size * ROWS, COLUMNS}, most[2] = {H5S_UNLIMITED, COLUMNS}, chunk[2] = {16, 100};
  const hid_t space = H5Screate_simple(2, now, is_chunked ? most : NULL), how = H5Pcreate(H5P_DATASET_CREATE);
  if (is_chunked) H5Pset_chunk(how, 2, chunk);
  const hid_t out = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, how, H5P_DEFAULT);
  need(out >= 0, "H5Dcreate");
  H5Pclose(how);
  H5Sclose(space);
  return out;
}

static void write_one(hid_t file, const char* name, int is_chunked, int seed) {
  const hid_t dataset = make(file, name, is_chunked);
  fill(seed);
  move(dataset, 0, 1);
  need(H5Dclose(dataset) >= 0, "H5Dclose");
}

static void check_one(hid_t file, const char* name, hsize_t first, int seed) {
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  need(dataset >= 0, name);
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = -1;
  move(dataset, first, 0);
  check(seed);
  H5Dclose(dataset);
}

static void extend(hid_t file, const char* name, int seed) {
  const hsize_t longer[2] = {(hsize_t)size * ROWS * 2, COLUMNS};
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  need(H5Dset_extent(dataset, longer) >= 0, "H5Dset_extent");
  fill(seed);
  move(dataset, (hsize_t)size * ROWS, 1);
  need(H5Dclose(dataset) >= 0, "H5Dclose");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 2) return 2;
  const hid_t by_mpi = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(by_mpi, MPI_COMM_WORLD, MPI_INFO_NULL);

  for (int round = 0; round < 2; ++round) { /* a second time over the file that is there */
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, by_mpi);
    need(file >= 0, "H5Fcreate");
    write_one(file, "plain", 0, 1);
    write_one(file, "chunked", 1, 2);
    need(H5Fclose(file) >= 0, "H5Fclose");

    file = H5Fopen(argv[1], H5F_ACC_RDWR, by_mpi);
    need(file >= 0, "H5Fopen");
    write_one(file, "later", 0, 3);
    extend(file, "chunked", 4);
    need(H5Fclose(file) >= 0, "H5Fclose of a changed file");
  }
  const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, by_mpi);
  need(file >= 0, "H5Fopen for reading");
  check_one(file, "plain", 0, 1);
  check_one(file, "chunked", 0, 2);
  check_one(file, "later", 0, 3);
  check_one(file, "chunked", (hsize_t)size * ROWS, 4);
  H5Fclose(file);
  H5Pclose(by_mpi);
  MPI_Finalize();
  return 0;
}
