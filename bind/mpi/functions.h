// The functions of MPI-3.1, chapter 13, whose names begin with MPI_File_: all of them, one line each.
//
// PIF_MPI_ACCESSES: those that move bytes. Their form (who waits, and for what), what they do, and where in the file:
// an offset that is given, the own pointer, the shared one, or the shared one in the order of the ranks. With MPI 4
// each has a second form, NAME_c, whose count is an MPI_Count.
// PIF_MPI_OTHERS: those that first have a file, then the parameters, then the arguments that are made of these.
// PIF_MPI_WITHOUT_FILE: those that have no open file yet, or end one.
// PIF_MPI_OWN: what is the MPI's own, for all that it needs is its own handle.
#pragma once

#define PIF_MPI_ACCESSES(X)                       \
  X(read_at, BLOCKING_AT, kRead, kAt)             \
  X(read_at_all, COLLECTIVE_AT, kRead, kAt)       \
  X(write_at, BLOCKING_AT, kWrite, kAt)           \
  X(write_at_all, COLLECTIVE_AT, kWrite, kAt)     \
  X(iread_at, STARTED_AT, kRead, kAt)             \
  X(iread_at_all, STARTED_AT, kRead, kAt)         \
  X(iwrite_at, STARTED_AT, kWrite, kAt)           \
  X(iwrite_at_all, STARTED_AT, kWrite, kAt)       \
  X(read_at_all_begin, BEGIN_AT, kRead, kAt)      \
  X(write_at_all_begin, BEGIN_AT, kWrite, kAt)    \
  X(read, BLOCKING, kRead, kOwn)                  \
  X(read_all, COLLECTIVE, kRead, kOwn)            \
  X(write, BLOCKING, kWrite, kOwn)                \
  X(write_all, COLLECTIVE, kWrite, kOwn)          \
  X(iread, STARTED, kRead, kOwn)                  \
  X(iread_all, STARTED, kRead, kOwn)              \
  X(iwrite, STARTED, kWrite, kOwn)                \
  X(iwrite_all, STARTED, kWrite, kOwn)            \
  X(read_all_begin, BEGIN, kRead, kOwn)           \
  X(write_all_begin, BEGIN, kWrite, kOwn)         \
  X(read_shared, BLOCKING, kRead, kShared)        \
  X(write_shared, BLOCKING, kWrite, kShared)      \
  X(iread_shared, STARTED, kRead, kShared)        \
  X(iwrite_shared, STARTED, kWrite, kShared)      \
  X(read_ordered, COLLECTIVE, kRead, kOrdered)    \
  X(write_ordered, COLLECTIVE, kWrite, kOrdered)  \
  X(read_ordered_begin, BEGIN, kRead, kOrdered)   \
  X(write_ordered_begin, BEGIN, kWrite, kOrdered) \
  X(read_at_all_end, END, kRead, kAt)             \
  X(write_at_all_end, END, kWrite, kAt)           \
  X(read_all_end, END, kRead, kOwn)               \
  X(write_all_end, END, kWrite, kOwn)             \
  X(read_ordered_end, END, kRead, kOrdered)       \
  X(write_ordered_end, END, kWrite, kOrdered)

#define PIF_MPI_OTHERS(X)                                                                                     \
  X(set_size, (MPI_Offset size), (size))                                                                      \
  X(preallocate, (MPI_Offset size), (size))                                                                   \
  X(get_size, (MPI_Offset * size), (size))                                                                    \
  X(get_amode, (int* amode), (amode))                                                                         \
  X(set_info, (MPI_Info info), (info))                                                                        \
  X(get_info, (MPI_Info * info), (info))                                                                      \
  X(set_view,                                                                                                 \
    (MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info), \
    (displacement, etype, filetype, datarep, info))                                                           \
  X(get_view, (MPI_Offset * displacement, MPI_Datatype * etype, MPI_Datatype * filetype, char* datarep),      \
    (displacement, etype, filetype, datarep))                                                                 \
  X(seek, (MPI_Offset offset, int whence), (offset, whence))                                                  \
  X(get_position, (MPI_Offset * offset), (offset))                                                            \
  X(seek_shared, (MPI_Offset offset, int whence), (offset, whence))                                           \
  X(get_position_shared, (MPI_Offset * offset), (offset))                                                     \
  X(set_atomicity, (int flag), (flag))                                                                        \
  X(get_atomicity, (int* flag), (flag))                                                                       \
  X(sync, (), ())

#define PIF_MPI_WITHOUT_FILE(X) \
  X(open)                       \
  X(close)                      \
  X(delete)

#define PIF_MPI_OWN(X) \
  X(get_group)         \
  X(get_byte_offset)   \
  X(get_type_extent)   \
  X(create_errhandler) \
  X(set_errhandler)    \
  X(get_errhandler)    \
  X(call_errhandler)   \
  X(c2f)               \
  X(f2c)
