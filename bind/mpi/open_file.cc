// Opening, closing and sizes. Views, pointers and data: data_access.cc.
#include "open_file.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "connection.h"

namespace pif::mpi {
namespace {

constexpr char kPrefix[] = "pif:";
constexpr std::size_t kTextMax = 480;

Outcome run(const std::function<std::int64_t(pif_connection*)>& call) { return Connection::instance().run(call); }

// The number of a hint; nothing: it is not there, or no number, and is not looked at then, as MPI has it.
std::optional<std::uint32_t> number_of(MPI_Info info, const char* key) {
  if (info == MPI_INFO_NULL) return {};
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int is_there = 0;
  PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_there);
  std::uint32_t number = 0;
  if (is_there == 0 || std::from_chars(value, value + std::strlen(value), number).ec != std::errc()) return {};
  return number;
}

// Of "3,0,1".
std::vector<std::uint32_t> numbers_of(MPI_Info info, const char* key) {
  std::vector<std::uint32_t> numbers;
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int is_there = 0;
  if (info != MPI_INFO_NULL) PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_there);
  if (is_there == 0) return numbers;
  const char* const end = value + std::strlen(value);
  for (const char* at = value; at < end;) {
    std::uint32_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (next < end && *next != ',')) return {};
    numbers.push_back(number);
    at = next + 1;
  }
  return numbers;
}

Outcome check_amode(int amode) {
  const int ways = amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);
  if (ways != MPI_MODE_RDONLY && ways != MPI_MODE_WRONLY && ways != MPI_MODE_RDWR)
    return {MPI_ERR_AMODE, "pif: exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR is needed"};
  if (ways == MPI_MODE_RDONLY && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0)
    return {MPI_ERR_AMODE, "pif: a file that is created is not read only"};
  if (ways == MPI_MODE_RDWR && (amode & MPI_MODE_SEQUENTIAL) != 0)
    return {MPI_ERR_AMODE, "pif: a sequential file is read or written"};
  return {};
}

}  // namespace

std::optional<std::string> path_in(const char* name) {
  if (name == nullptr || std::strncmp(name, kPrefix, sizeof kPrefix - 1) != 0) return {};
  return std::string(name + sizeof kPrefix - 1);
}

// ---- opening -------------------------------------------------------------------------------------------------------

// Sent as bytes between ranks of one program.
struct OpenFile::Plan {
  std::int32_t amode;
  std::int32_t error_class;
  std::int32_t is_new;
  std::int32_t reports;
  std::uint64_t counter;
  std::uint64_t token_bytes;
  char token[PIF_TOKEN_BYTES_MAX];
  char text[kTextMax];
};

// Every rank hears of the first rank that failed.
Outcome OpenFile::agree(const Outcome& own) const {
  int first = own ? ranks_ : rank_;
  PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm_);
  if (first == ranks_) return {};
  struct {
    int error_class;
    char text[kTextMax];
  } told = {own.error_class, {}};
  own.text.copy(told.text, kTextMax - 1);
  PMPI_Bcast(&told, sizeof told, MPI_BYTE, first, comm_);
  return {told.error_class, told.text};
}

void OpenFile::open_first(Plan& plan, const std::string& path, MPI_Info info) {
  const auto mode = (amode_ & MPI_MODE_RDONLY) == 0        ? PIF_WRITE
                    : (amode_ & MPI_MODE_UNIQUE_OPEN) != 0 ? PIF_HOLD
                                                           : PIF_READ;
  Outcome outcome = run([&](pif_connection* c) -> std::int64_t {
    file_ = pif_open(c, path.c_str(), mode);
    return file_ != nullptr ? 0 : -pif_error(c);
  });
  if (outcome && (amode_ & MPI_MODE_EXCL) != 0 && (amode_ & MPI_MODE_CREATE) != 0)
    outcome = {MPI_ERR_FILE_EXISTS, "pif: " + path + " is there already"};
  if (outcome.error_class == MPI_ERR_NO_SUCH_FILE && (amode_ & MPI_MODE_CREATE) != 0) {
    const std::vector<std::uint32_t> nodes = numbers_of(info, "pif_nodes");
    pif_create_options options = {};
    options.width = number_of(info, "striping_factor").value_or(0);
    options.record_length = number_of(info, "striping_unit").value_or(0);
    options.bevy = number_of(info, "pif_bevy").value_or(0);
    options.exclusive = (amode_ & MPI_MODE_EXCL) != 0;
    if (!nodes.empty()) {
      options.nodes = nodes.data();
      options.node_count = nodes.size();
    }
    plan.is_new = 1;
    outcome = run([&](pif_connection* c) -> std::int64_t {
      file_ = pif_create(c, path.c_str(), &options);
      if (file_ == nullptr) return -pif_error(c);
      const std::int64_t bytes = pif_share(file_, plan.token, sizeof plan.token);
      plan.token_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
      return bytes;
    });
  }
  if (outcome) outcome = run([&](pif_connection*) { return pif_counter_open(file_, &plan.counter); });
  plan.error_class = outcome.error_class;
  outcome.text.copy(plan.text, kTextMax - 1);
}

Outcome OpenFile::open_other(const Plan& plan, const std::string& path) {
  return run([&](pif_connection* c) -> std::int64_t {
    const auto mode = (amode_ & MPI_MODE_RDONLY) != 0 ? PIF_READ : PIF_WRITE;
    file_ = plan.is_new != 0 ? pif_join(c, plan.token, plan.token_bytes) : pif_open(c, path.c_str(), mode);
    return file_ != nullptr ? 0 : -pif_error(c);
  });
}

void OpenFile::learn_shape() {
  record_length_ = pif_record_length(file_);
  width_ = static_cast<std::uint32_t>(std::max<std::int64_t>(0, pif_nodes(file_, nullptr, 0)));
}

Outcome OpenFile::open(MPI_Comm comm, const std::string& path, int amode, MPI_Info info,
                       std::unique_ptr<OpenFile>& opened) {
  std::unique_ptr<OpenFile> made(new OpenFile());
  PMPI_Comm_dup(comm, &made->comm_);
  PMPI_Comm_rank(made->comm_, &made->rank_);
  PMPI_Comm_size(made->comm_, &made->ranks_);
  made->amode_ = amode;
  made->path_ = path;
  Plan plan = {};
  Outcome outcome = check_amode(amode);
  if (made->rank_ == 0) {
    plan.amode = amode;
    plan.reports = std::getenv("PIF_MPIIO_REPORT") != nullptr;
    if (outcome) made->open_first(plan, path, info);
  }
  PMPI_Bcast(&plan, sizeof plan, MPI_BYTE, 0, made->comm_);
  if (outcome && plan.amode != amode) outcome = {MPI_ERR_NOT_SAME, "pif: not all ranks open it in the same mode"};
  if (outcome && plan.error_class != MPI_SUCCESS) outcome = {plan.error_class, plan.text};
  if (outcome && made->rank_ != 0) outcome = made->open_other(plan, path);
  if (outcome = made->agree(outcome); !outcome) return outcome;
  made->is_new_ = plan.is_new != 0;
  made->counter_ = plan.counter;
  made->reports_ = plan.reports != 0;
  made->learn_shape();
  if (outcome = made->agree(decode(MPI_BYTE, made->filetype_)); !outcome) return outcome;
  if ((amode & MPI_MODE_APPEND) != 0) {
    outcome = made->end_of_view(made->own_);
    if (outcome && made->rank_ == 0) outcome = made->set_shared(made->own_);
    if (outcome = made->agree(outcome); !outcome) return outcome;
  }
  opened = std::move(made);
  return {};
}

Outcome OpenFile::remove(const std::string& path) {
  return run([&](pif_connection* c) { return pif_remove(c, path.c_str(), 0); });
}

// ---- closing -------------------------------------------------------------------------------------------------------

OpenFile::~OpenFile() {
  if (file_ != nullptr) static_cast<void>(run([&](pif_connection*) { return pif_close(file_); }));
  if (comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
}

Outcome OpenFile::close() {
  const bool goes = (amode_ & MPI_MODE_DELETE_ON_CLOSE) != 0;
  report();
  Outcome outcome = run([&](pif_connection*) { return is_new_ && !goes ? pif_done(file_) : 0; });
  outcome = agree(outcome);
  if (rank_ == 0) {
    const bool is_given_up = is_new_ && (goes || !outcome);
    const Outcome ended = run([&](pif_connection* c) -> std::int64_t {
      static_cast<void>(pif_counter_close(c, counter_));  // it ends with the connection at the latest
      if (is_given_up) return pif_abort(file_);
      return is_new_ ? pif_commit(file_) : 0;
    });
    if (outcome) outcome = ended;
  }
  outcome = agree(outcome);
  const Outcome closed = run([&](pif_connection*) { return pif_close(file_); });
  file_ = nullptr;
  if (outcome && !is_new_) outcome = agree(closed);
  if (goes && !is_new_ && rank_ == 0 && outcome)
    outcome = run([&](pif_connection* c) { return pif_remove(c, path_.c_str(), 0); });
  return agree(outcome);
}

void OpenFile::report() const {
  if (!reports_) return;
  std::uint64_t sums[3] = {calls_, bytes_read_, bytes_written_};
  double seconds = std::chrono::duration<double>(time_).count();
  const bool is_first = rank_ == 0;
  PMPI_Reduce(is_first ? MPI_IN_PLACE : sums, sums, 3, MPI_UINT64_T, MPI_SUM, 0, comm_);
  PMPI_Reduce(is_first ? MPI_IN_PLACE : &seconds, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, comm_);
  if (is_first)
    std::fprintf(stderr,
                 "pif: %s: %d ranks, %llu calls, %llu bytes read, %llu bytes written, %.3f s at most in one rank\n",
                 path_.c_str(), ranks_, static_cast<unsigned long long>(sums[0]),
                 static_cast<unsigned long long>(sums[1]), static_cast<unsigned long long>(sums[2]), seconds);
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

Outcome OpenFile::own_end(std::uint64_t& bytes) {
  return run([&](pif_connection*) { return pif_file_length(file_, nullptr, &bytes); });
}

Outcome OpenFile::size(MPI_Offset& bytes) {
  std::uint64_t end = 0;
  if (Outcome outcome = own_end(end); !outcome) return outcome;
  bytes = static_cast<MPI_Offset>(is_new_ ? std::max(end, others_end_) : end);
  return {};
}

// Of a new file: as far as all ranks have written.
Outcome OpenFile::agree_end() {
  std::uint64_t end = 0;
  const Outcome outcome = agree(own_end(end));
  if (!outcome) return outcome;
  end = std::max(end, others_end_);
  PMPI_Allreduce(&end, &others_end_, 1, MPI_UINT64_T, MPI_MAX, comm_);
  return {};
}

// Nobody writes before all have cut it.
Outcome OpenFile::resize_new(std::uint64_t bytes) {
  const Outcome outcome = agree(run([&](pif_connection*) { return pif_resize(file_, bytes); }));
  if (outcome) others_end_ = bytes;
  return outcome;
}

// By rank 0. Shorter, it is another file, which the others open.
Outcome OpenFile::resize_committed(std::uint64_t bytes) {
  std::uint64_t before = 0;
  Outcome outcome = agree(own_end(before));
  if (!outcome) return outcome;
  if (rank_ == 0) outcome = run([&](pif_connection*) { return pif_resize(file_, bytes); });
  int is_shorter = bytes < before;
  PMPI_Bcast(&is_shorter, 1, MPI_INT, 0, comm_);
  outcome = agree(outcome);
  if (!outcome || is_shorter == 0 || ranks_ == 1) return outcome;
  if (rank_ != 0) {
    static_cast<void>(run([&](pif_connection*) { return pif_close(file_); }));  // it is gone
    file_ = nullptr;
    outcome = open_other({}, path_);
  }
  return agree(outcome);
}

Outcome OpenFile::set_size(MPI_Offset bytes) {
  if (bytes < 0) return {MPI_ERR_ARG, "pif: a negative size"};
  if ((amode_ & MPI_MODE_RDONLY) != 0) return {MPI_ERR_READ_ONLY, "pif: the file is open for reading"};
  if (is_sequential()) return {MPI_ERR_UNSUPPORTED_OPERATION, "pif: the file is sequential"};
  const auto size = static_cast<std::uint64_t>(bytes);
  return is_new_ ? resize_new(size) : resize_committed(size);
}

Outcome OpenFile::preallocate(MPI_Offset bytes) {
  if (bytes < 0) return {MPI_ERR_ARG, "pif: a negative size"};
  if ((amode_ & MPI_MODE_RDONLY) != 0) return {MPI_ERR_READ_ONLY, "pif: the file is open for reading"};
  if (is_sequential()) return {MPI_ERR_UNSUPPORTED_OPERATION, "pif: the file is sequential"};
  const auto size = static_cast<std::uint64_t>(bytes);
  if (!is_new_) {
    std::uint64_t end = 0;
    const Outcome outcome = agree(own_end(end));
    PMPI_Bcast(&end, 1, MPI_UINT64_T, 0, comm_);
    if (!outcome || end >= size) return outcome;
    return resize_committed(size);
  }
  Outcome outcome = agree_end();
  if (!outcome) return outcome;
  if (rank_ == 0) outcome = run([&](pif_connection*) { return pif_preallocate(file_, size); });
  outcome = agree(outcome);
  if (!outcome || others_end_ >= size) return outcome;
  return resize_new(size);
}

Outcome OpenFile::sync() {
  if ((amode_ & MPI_MODE_RDONLY) != 0) return {};
  const Outcome outcome = agree(run([&](pif_connection*) { return pif_sync(file_); }));
  return outcome && is_new_ ? agree_end() : outcome;
}

MPI_Info OpenFile::hints() const {
  MPI_Info info = MPI_INFO_NULL;
  PMPI_Info_create(&info);
  PMPI_Info_set(info, "striping_factor", std::to_string(width_).c_str());
  PMPI_Info_set(info, "striping_unit", std::to_string(record_length_).c_str());
  return info;
}

}  // namespace pif::mpi
