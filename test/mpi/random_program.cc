// A random MPI program: views, pointers, sizes and every kind of access, all from one seed. What it sees (bytes,
// counts, positions, sizes, classes of errors) it prints. So the same program on a local file and on "pif:" prints the
// same.
//
//   random_program FILE SEED STEPS
//
// Each rank writes bytes of its own, and between two steps all have synced: MPI leaves nothing open then.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

int rank = 0, ranks = 0;
std::string seen;

void note(const std::string& what, std::int64_t value) { seen += what + ' ' + std::to_string(value) + '\n'; }

// Each MPI has numbers of its own.
const char* name_of(int error_class) {
  const std::pair<int, const char*> names[] = {
      {MPI_ERR_ACCESS, "access"},
      {MPI_ERR_AMODE, "amode"},
      {MPI_ERR_ARG, "arg"},
      {MPI_ERR_BAD_FILE, "bad file"},
      {MPI_ERR_COUNT, "count"},
      {MPI_ERR_FILE_EXISTS, "file exists"},
      {MPI_ERR_IO, "io"},
      {MPI_ERR_NO_SUCH_FILE, "no such file"},
      {MPI_ERR_OTHER, "other"},
      {MPI_ERR_READ_ONLY, "read only"},
      {MPI_ERR_NOT_SAME, "not same"},
      {MPI_ERR_TYPE, "type"},
      {MPI_ERR_UNSUPPORTED_OPERATION, "unsupported operation"},
  };
  for (const auto& [number, name] : names)
    if (number == error_class) return name;
  return "another one";
}

void check(const char* what, int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  if (error_class != MPI_SUCCESS) seen += std::string(what) + ": error class " + name_of(error_class) + '\n';
}

std::uint64_t digest(const std::vector<char>& bytes) {
  std::uint64_t sum = 1469598103934665603u;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return sum;
}

struct View {
  MPI_Datatype etype = MPI_BYTE, filetype = MPI_BYTE;
  int unit = 1;
  bool is_made = false;  // the filetype is to be freed
};

// All ranks draw the same numbers.
struct Draw {
  std::mt19937 random;
  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
};

MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
  MPI_Datatype made;
  MPI_Type_create_resized(type, 0, extent, &made);
  MPI_Type_free(&type);
  return made;
}

// Blocks of every rank in turn, of different lengths, in the forms that indexed types have.
MPI_Datatype indexed(Draw& draw, const View& view, int form) {
  const int count = 1 + draw.below(5), most = 1 + draw.below(4);
  std::vector<int> lengths(static_cast<std::size_t>(count)), at(lengths.size());
  std::vector<MPI_Aint> bytes_at(lengths.size());
  const int same = 1 + draw.below(most);
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(i);
    lengths[n] = 1 + draw.below(most);
    at[n] = (i * ranks + rank) * most;
    bytes_at[n] = static_cast<MPI_Aint>(at[n]) * view.unit;
  }
  MPI_Datatype type;
  if (form == 0) MPI_Type_indexed(count, lengths.data(), at.data(), view.etype, &type);
  if (form == 1) MPI_Type_create_hindexed(count, lengths.data(), bytes_at.data(), view.etype, &type);
  if (form == 2) MPI_Type_create_indexed_block(count, same, at.data(), view.etype, &type);
  if (form == 3) MPI_Type_create_hindexed_block(count, same, bytes_at.data(), view.etype, &type);
  if (form == 4) {
    const std::vector<MPI_Datatype> types(lengths.size(), view.etype);
    MPI_Type_create_struct(count, lengths.data(), bytes_at.data(), types.data(), &type);
  }
  return resized(type, static_cast<MPI_Aint>(count) * ranks * most * view.unit);
}

MPI_Datatype array(Draw& draw, const View& view, int form) {
  const int order = draw.below(2) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  const int rows = 1 + draw.below(4), columns = 1 + draw.below(4);
  MPI_Datatype type;
  if (form == 0) {
    const int fast = order == MPI_ORDER_C ? 1 : 0;
    int sizes[2], parts[2], starts[2] = {0, 0};
    sizes[1 - fast] = parts[1 - fast] = rows;
    sizes[fast] = columns * ranks;
    parts[fast] = columns;
    starts[fast] = columns * rank;
    MPI_Type_create_subarray(2, sizes, parts, starts, order, view.etype, &type);
    return type;
  }
  const int how[2] = {MPI_DISTRIBUTE_NONE, draw.below(2) == 0 ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK};
  // Every rank has a part: where one has none, ROMIO writes its bytes side by side.
  const int rest = draw.below(2);
  const int sizes[2] = {rows, columns * ranks + (how[1] == MPI_DISTRIBUTE_CYCLIC ? rest : 0)};
  const int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  const int processes[2] = {1, ranks};
  MPI_Type_create_darray(ranks, rank, 2, sizes, how, arguments, processes, order, view.etype, &type);
  return type;
}

MPI_Datatype strided(Draw& draw, const View& view, int form) {
  const int count = 1 + draw.below(5), length = 1 + draw.below(4);
  MPI_Datatype vector, placed;
  if (form == 0) MPI_Type_vector(count, length, length * ranks, view.etype, &vector);
  if (form == 1) {
    MPI_Datatype one;
    MPI_Type_contiguous(length, view.etype, &one);
    MPI_Type_create_hvector(count, 1, static_cast<MPI_Aint>(length) * ranks * view.unit, one, &vector);
    MPI_Type_free(&one);
  }
  const MPI_Aint at = static_cast<MPI_Aint>(rank) * length * view.unit;
  MPI_Type_create_hindexed_block(1, 1, &at, vector, &placed);
  MPI_Type_free(&vector);
  return resized(placed, static_cast<MPI_Aint>(count) * length * ranks * view.unit);
}

void set_view(MPI_File file, Draw& draw, View& view) {
  if (view.is_made) MPI_Type_free(&view.filetype);
  const MPI_Datatype etypes[] = {MPI_BYTE, MPI_INT, MPI_DOUBLE};
  view.etype = etypes[draw.below(3)];
  MPI_Type_size(view.etype, &view.unit);
  MPI_Offset displacement = draw.below(500);
  view.is_made = true;
  switch (draw.below(4)) {
    case 0:
      view.is_made = false;
      view.filetype = view.etype;
      displacement += rank * 6000;
      break;
    case 1: view.filetype = indexed(draw, view, draw.below(5)); break;
    case 2: view.filetype = array(draw, view, draw.below(2)); break;
    default: view.filetype = strided(draw, view, draw.below(2)); break;
  }
  if (view.is_made) MPI_Type_commit(&view.filetype);
  check("set_view", MPI_File_set_view(file, displacement, view.etype, view.filetype, "native", MPI_INFO_NULL));
}

// Room for some etypes in memory, packed or not.
struct Memory {
  std::vector<char> bytes;
  char* at = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  bool is_made = false;
};

Memory memory_for(Draw& draw, const View& view, int etypes) {
  Memory memory;
  memory.bytes.resize(4096 * 8);
  memory.at = memory.bytes.data() + 8192;
  memory.count = etypes;
  memory.type = view.etype;
  const int form = draw.below(4);
  memory.is_made = form > 0;
  if (form == 1) {
    memory.count = 1;
    MPI_Type_vector(etypes, 1, 2, view.etype, &memory.type);
  } else if (form == 2) {  // backwards, and in front of its beginning
    std::vector<MPI_Aint> at(static_cast<std::size_t>(etypes));
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = -static_cast<MPI_Aint>(i) * view.unit * 2;
    memory.count = 1;
    MPI_Type_create_hindexed_block(etypes, 1, at.data(), view.etype, &memory.type);
  } else if (form == 3) {
    MPI_Datatype one;
    MPI_Type_contiguous(1, view.etype, &one);
    MPI_Type_create_resized(one, 0, view.unit + 4, &memory.type);
    MPI_Type_free(&one);
  }
  if (memory.is_made) MPI_Type_commit(&memory.type);
  return memory;
}

enum class Kind { kAt, kOwn, kShared, kOrdered };

int start_and_wait(int code, MPI_Request& request, MPI_Status& status) {
  return code == MPI_SUCCESS ? MPI_Wait(&request, &status) : code;
}

int write(MPI_File f, Kind kind, int way, MPI_Offset at, const Memory& m, MPI_Status& status) {
  MPI_Request request;
  int code = MPI_SUCCESS;
  if (kind == Kind::kShared) {
    if (way % 2 == 0) return MPI_File_write_shared(f, m.at, m.count, m.type, &status);
    return start_and_wait(MPI_File_iwrite_shared(f, m.at, m.count, m.type, &request), request, status);
  }
  if (kind == Kind::kOrdered) {
    if (way % 2 == 0) return MPI_File_write_ordered(f, m.at, m.count, m.type, &status);
    code = MPI_File_write_ordered_begin(f, m.at, m.count, m.type);
    return code == MPI_SUCCESS ? MPI_File_write_ordered_end(f, m.at, &status) : code;
  }
  const bool own = kind == Kind::kOwn;
  switch (way) {
    case 0:
      return own ? MPI_File_write(f, m.at, m.count, m.type, &status)
                 : MPI_File_write_at(f, at, m.at, m.count, m.type, &status);
    case 1:
      return own ? MPI_File_write_all(f, m.at, m.count, m.type, &status)
                 : MPI_File_write_at_all(f, at, m.at, m.count, m.type, &status);
    case 2:
      code = own ? MPI_File_iwrite(f, m.at, m.count, m.type, &request)
                 : MPI_File_iwrite_at(f, at, m.at, m.count, m.type, &request);
      return start_and_wait(code, request, status);
    case 3:
      code = own ? MPI_File_iwrite_all(f, m.at, m.count, m.type, &request)
                 : MPI_File_iwrite_at_all(f, at, m.at, m.count, m.type, &request);
      return start_and_wait(code, request, status);
    default:
      code = own ? MPI_File_write_all_begin(f, m.at, m.count, m.type)
                 : MPI_File_write_at_all_begin(f, at, m.at, m.count, m.type);
      if (code != MPI_SUCCESS) return code;
      return own ? MPI_File_write_all_end(f, m.at, &status) : MPI_File_write_at_all_end(f, m.at, &status);
  }
}

int read(MPI_File f, Kind kind, int way, MPI_Offset at, const Memory& m, MPI_Status& status) {
  MPI_Request request;
  int code = MPI_SUCCESS;
  if (kind == Kind::kShared) {
    if (way % 2 == 0) return MPI_File_read_shared(f, m.at, m.count, m.type, &status);
    return start_and_wait(MPI_File_iread_shared(f, m.at, m.count, m.type, &request), request, status);
  }
  if (kind == Kind::kOrdered) {
    if (way % 2 == 0) return MPI_File_read_ordered(f, m.at, m.count, m.type, &status);
    code = MPI_File_read_ordered_begin(f, m.at, m.count, m.type);
    return code == MPI_SUCCESS ? MPI_File_read_ordered_end(f, m.at, &status) : code;
  }
  const bool own = kind == Kind::kOwn;
  switch (way) {
    case 0:
      return own ? MPI_File_read(f, m.at, m.count, m.type, &status)
                 : MPI_File_read_at(f, at, m.at, m.count, m.type, &status);
    case 1:
      return own ? MPI_File_read_all(f, m.at, m.count, m.type, &status)
                 : MPI_File_read_at_all(f, at, m.at, m.count, m.type, &status);
    case 2:
      code = own ? MPI_File_iread(f, m.at, m.count, m.type, &request)
                 : MPI_File_iread_at(f, at, m.at, m.count, m.type, &request);
      return start_and_wait(code, request, status);
    case 3:
      code = own ? MPI_File_iread_all(f, m.at, m.count, m.type, &request)
                 : MPI_File_iread_at_all(f, at, m.at, m.count, m.type, &request);
      return start_and_wait(code, request, status);
    default:
      code = own ? MPI_File_read_all_begin(f, m.at, m.count, m.type)
                 : MPI_File_read_at_all_begin(f, at, m.at, m.count, m.type);
      if (code != MPI_SUCCESS) return code;
      return own ? MPI_File_read_all_end(f, m.at, &status) : MPI_File_read_at_all_end(f, m.at, &status);
  }
}

// The shared pointer is used by one rank at a time; an ordered access is everybody's.
void access(MPI_File file, Draw& draw, const View& view) {
  const bool writes = draw.below(2) == 0;
  const auto kind = static_cast<Kind>(draw.below(4));
  const int way = draw.below(5), etypes = 1 + draw.below(40), turn = draw.below(ranks);
  const MPI_Offset at = draw.below(40);
  Memory memory = memory_for(draw, view, etypes);
  const auto salt = static_cast<unsigned>(draw.random());
  if (writes) {
    std::mt19937 random(salt + static_cast<unsigned>(rank));
    for (char& byte : memory.bytes) byte = static_cast<char>(random());
  }
  if (kind == Kind::kOwn) check("seek", MPI_File_seek(file, at, MPI_SEEK_SET));
  if (kind == Kind::kShared || kind == Kind::kOrdered)
    check("seek_shared", MPI_File_seek_shared(file, at, MPI_SEEK_SET));
  MPI_Status status;
  std::memset(&status, 0, sizeof status);
  const bool takes_part = kind != Kind::kShared || turn == rank;
  if (takes_part) {
    check("access", writes ? write(file, kind, way, at, memory, status) : read(file, kind, way, at, memory, status));
    int count = -1, elements = -1;
    MPI_Get_count(&status, memory.type, &count);
    MPI_Get_elements(&status, memory.type, &elements);
    note("count", count);
    note("elements", elements);
    if (!writes) note("bytes", static_cast<std::int64_t>(digest(memory.bytes) >> 1));
  }
  if (memory.is_made) MPI_Type_free(&memory.type);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Offset own = -1, shared = -1;
  check("get_position", MPI_File_get_position(file, &own));
  check("get_position_shared", MPI_File_get_position_shared(file, &shared));
  note("position", own);
  note("shared", shared);
}

void sizes(MPI_File file, Draw& draw) {
  const MPI_Offset bytes = 50000 + draw.below(20000);
  if (draw.below(2) == 0)
    check("set_size", MPI_File_set_size(file, bytes));
  else
    check("preallocate", MPI_File_preallocate(file, bytes));
  MPI_Offset now = -1;
  check("get_size", MPI_File_get_size(file, &now));
  note("size", now);
}

void errors(MPI_File file, Draw& draw) {
  char byte = 0;
  MPI_Status status;
  MPI_Offset offset = 0;
  switch (draw.below(3)) {
    case 0: check("negative offset", MPI_File_write_at(file, -1, &byte, 1, MPI_BYTE, &status)); break;
    case 1: check("negative seek", MPI_File_seek(file, -1000000, MPI_SEEK_SET)); break;
    default: check("negative count", MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, &status)); break;
  }
  check("get_byte_offset", MPI_File_get_byte_offset(file, 17, &offset));
  note("byte offset", offset);
}

void settle(MPI_File file) {
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
}

void run(const char* name, int amode, Draw& draw, int steps) {
  MPI_File file;
  const int code = MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file);
  check("open", code);
  if (code != MPI_SUCCESS) return;
  check("set_size", MPI_File_set_size(file, 50000));
  View view;
  set_view(file, draw, view);
  for (int step = 0; step < steps; ++step) {
    settle(file);
    note("step", step);
    switch (draw.below(10)) {
      case 0: sizes(file, draw); break;
      case 1: errors(file, draw); break;
      case 2:
      case 3: set_view(file, draw, view); break;
      default: access(file, draw, view); break;
    }
  }
  settle(file);
  check("close", MPI_File_close(&file));
  if (view.is_made) MPI_Type_free(&view.filetype);
}

// All of it, by each rank, also past its end.
void read_back(const char* name) {
  MPI_File file;
  check("open", MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  MPI_Offset size = 0;
  check("get_size", MPI_File_get_size(file, &size));
  note("size", size);
  std::vector<char> all(static_cast<std::size_t>(size) + 1000);
  MPI_Status status;
  int count = -1;
  // A collective read past the end: ROMIO counts what was asked for.
  check("read", MPI_File_read_at(file, 0, all.data(), static_cast<int>(all.size()), MPI_BYTE, &status));
  MPI_Get_count(&status, MPI_BYTE, &count);
  note("count", count);
  note("all bytes", static_cast<std::int64_t>(digest(all) >> 1));
  check("write", MPI_File_write_at(file, 0, all.data(), 1, MPI_BYTE, &status));
  check("close", MPI_File_close(&file));
}

void print() {
  int size = static_cast<int>(seen.size());
  for (int from = 0; from < ranks; ++from) {
    if (from == 0 && rank == 0) std::printf("rank 0\n%s", seen.c_str());
    if (from > 0 && rank == from) {
      MPI_Send(&size, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
      MPI_Send(seen.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    if (from > 0 && rank == 0) {
      int length = 0;
      MPI_Recv(&length, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      std::string theirs(static_cast<std::size_t>(length), ' ');
      MPI_Recv(theirs.data(), length, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      std::printf("rank %d\n%s", from, theirs.c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Draw draw{std::mt19937(static_cast<unsigned>(std::atoi(argv[2])))};
  const int steps = std::atoi(argv[3]);
  run(argv[1], MPI_MODE_RDONLY, draw, 0);  // there is no such file
  run(argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, draw, steps);
  run(argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, draw, 0);  // it is there
  run(argv[1], MPI_MODE_RDWR, draw, steps);
  read_back(argv[1]);
  print();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check("delete", MPI_File_delete(argv[1], MPI_INFO_NULL));
  MPI_Finalize();
  return 0;
}
