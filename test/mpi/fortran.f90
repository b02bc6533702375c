! fortran FILE: each process writes a number through Fortran, and reads it back. The exit code is what failed.
program fortran
  use mpi
  implicit none
  integer :: rank, fh, error, status(MPI_STATUS_SIZE), value, back, class
  integer(kind=MPI_OFFSET_KIND) :: at
  character(len=200) :: name
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call get_command_argument(1, name)
  call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, error)
  if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, class)
  at = rank * 4
  value = 1000 + rank
  call MPI_File_write_at_all(fh, at, value, 1, MPI_INTEGER, status, error)
  if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 2, class)
  call MPI_File_read_at_all(fh, at, back, 1, MPI_INTEGER, status, error)
  if (back /= value) call MPI_Abort(MPI_COMM_WORLD, 3, class)
  call MPI_File_close(fh, error)
  if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 4, class)
  call MPI_Finalize(error)
end program fortran
