#include "file/async.h"

#include <limits>
#include <memory>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/piece_io.h"
#include "file/piece_reader.h"
#include "file/piece_writer.h"
#include "pif/base/assert.h"
#include "session/one_user.h"

namespace pif::client {

namespace {

constexpr std::size_t kOperationsMax = 1024;          // of one file
constexpr std::uint64_t kParallelBytes = 256u << 10;  // less is done sooner than another thread has woken up

// Rows that go to the redo logs of LFSs.
class Overwriting : public AsyncOperation {
 public:
  Overwriting(FileState& file, std::uint64_t records) : AsyncOperation(file, false), records_(records) {}

  [[nodiscard]] Status start(RecordNumber first, std::span<const std::byte> in) {
    return file_.overwriter.start(first, in, *requests_);
  }
  std::uint64_t result() const override { return records_; }

 private:
  Result<bool> next() override { return false; }
  const std::uint64_t records_;
};

// What was done when it was started.
class Done : public AsyncOperation {
 public:
  Done(FileState& file, std::uint64_t result) : AsyncOperation(file, false), result_(result) {}
  std::uint64_t result() const override { return result_; }

 private:
  Result<bool> next() override { return false; }
  const std::uint64_t result_;
};

Result<File::Operation> keep(FileState& file, std::unique_ptr<AsyncOperation> operation) {
  operation->move_on();
  const File::Operation number = file.next_operation++;
  file.operations.emplace(number, std::move(operation));
  return number;
}

Status check_may_start(FileState& file) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  if (file.operations.size() < kOperationsMax) return {};
  return fail(Code::kTooLarge,
              fmt::format("{}: {} operations are under way: wait for some", file.parts.path, kOperationsMax));
}

std::uint64_t records_of(const FileState& file, std::uint64_t bytes) {
  const std::uint64_t length = file.parts.format.record_length;
  return length == 0 ? 0 : (bytes + length - 1) / length;
}

Result<std::uint64_t> bytes_of(const File::Pieces& wanted) {
  if (wanted.bytes) return *wanted.bytes;
  PIF_TRY_VALUE(const auto memory, patterns::Compiled::make(wanted.memory));
  return memory.bytes();
}

Result<AsyncOperation*> find(FileState& file, File::Operation operation) {
  const auto found = file.operations.find(operation);
  if (found != file.operations.end()) return found->second.get();
  return fail(Code::kInvalid, fmt::format("{}: operation {} is not under way", file.parts.path, operation));
}

}  // namespace

// ---- one operation -------------------------------------------------------------------------------------------------

AsyncOperation::AsyncOperation(FileState& file, bool is_foreground) : file_(file), is_foreground_(is_foreground) {
  make_requests();
}

AsyncOperation::~AsyncOperation() { stop(); }

// A forked child has neither the pool's threads nor a use for what they do.
void AsyncOperation::stop() {
  if (!tasks_are_done() && !file_.session->user().is_in_child()) file_.session->pool().cancel(tasks_);
  tasks_.clear();
}

void AsyncOperation::make_requests() { requests_.emplace(file_.session->links(), file_.grant); }

bool AsyncOperation::tasks_are_done() const {
  for (const Pool::Task& task : tasks_) {
    if (!task.is_done()) return false;
  }
  return true;
}

void AsyncOperation::start_tasks(std::uint64_t bytes) {
  static_cast<void>(requests_->step().has_value());  // under way meanwhile; an error stays for the next step
  if (is_foreground_ && (bytes < kParallelBytes || tasks_.size() == 1)) {
    for (Pool::Task& task : tasks_) Pool::run_here(task);
  } else {
    for (Pool::Task& task : tasks_) file_.session->pool().start(task);
  }
}

bool AsyncOperation::move_on(bool may_wait) {
  while (!has_ended_) {
    if (status_) status_ = requests_->step();
    if (!tasks_are_done()) return false;
    if (status_ && !requests_->idle()) return false;
    tasks_.clear();
    if (!status_ && !may_wait) return true;
    if (!status_ && may_go_on(status_.error())) {
      make_requests();
      status_ = {};
    }
    auto more = status_ ? next() : Result<bool>(false);
    if (!more) {
      status_ = fail(std::move(more.error()));
      requests_->drop_all();
    } else if (!*more) {
      has_ended_ = true;
    }
  }
  return true;
}

Status AsyncOperation::run() {
  while (!move_on(true)) {
    if (!tasks_are_done()) {
      file_.session->pool().finish(tasks_);
      continue;
    }
    auto pumped = file_.session->pump(*requests_);
    if (!pumped && requests_->step()) return pumped;  // else it is the requests' own, which move_on() finds
  }
  return status_;
}

// ---- operations of a file ------------------------------------------------------------------------------------------

Result<File::Operation> start_read(FileState& file, RecordNumber first, std::span<std::byte> out, std::uint64_t count) {
  PIF_TRY(check_may_start(file));
  if (file.creating()) {
    PIF_TRY_VALUE(const std::uint64_t records, file.reader.read(first, out, count));
    return keep(file, std::make_unique<Done>(file, records));
  }
  PIF_TRY_VALUE(const std::uint64_t records, file.reader.clip(first, out.size(), count));
  if (records == 0) return keep(file, std::make_unique<Done>(file, 0));
  const std::uint64_t length = file.parts.format.record_length;
  const std::uint64_t bytes = (records - 1) * length + file.length.record_bytes(first + records - 1);
  auto fill = fill_from<component::ExtentRun>(first * length, out.first(bytes));
  return keep(file, std::make_unique<PieceReader>(file, std::move(fill), false, records));
}

Result<File::Operation> start_write(FileState& file, RecordNumber first, std::span<const std::byte> in) {
  PIF_TRY(check_may_start(file));
  PIF_TRY(file.check_may_write());
  const std::uint64_t records = records_of(file, in.size());
  if (records > std::numeric_limits<RecordNumber>::max() - first) PIF_TRY(file.past_end(first));
  if (file.scattered.is_on()) {
    PIF_TRY_VALUE(const std::uint64_t offset, file.scattered_offset(first, in.size()));
    auto fill = fill_from<component::ConstExtent>(offset, in);
    return keep(file, std::make_unique<PieceWriter>(file, std::move(fill), false, records));
  }
  bool inside = false;
  if (file.parts.format.is_fixed() && !file.creating() && !in.empty()) {
    PIF_TRY_VALUE(const FileLength now, file.length.for_records(first + records));
    inside = first + records <= now.records;
  }
  if (inside) {
    auto operation = std::make_unique<Overwriting>(file, records);
    PIF_TRY(operation->start(first, in));
    return keep(file, std::move(operation));
  }
  PIF_TRY(file.write(first, in));  // staged (a file being created), or an append, which is one exchange anyway
  return keep(file, std::make_unique<Done>(file, records));
}

Result<File::Operation> start_read_pieces(FileState& file, const File::Pieces& wanted, std::span<std::byte> out) {
  PIF_TRY(check_may_start(file));
  PIF_TRY_VALUE(auto operation, make_piece_reader(file, wanted, out, false));
  if (operation) return keep(file, std::move(operation));
  PIF_TRY_VALUE(const std::uint64_t bytes, read_pieces(file, wanted, out));  // as each of them must wait for the last
  return keep(file, std::make_unique<Done>(file, bytes));
}

Result<File::Operation> start_write_pieces(FileState& file, const File::Pieces& wanted, std::span<const std::byte> in) {
  PIF_TRY(check_may_start(file));
  PIF_TRY(file.check_may_write());
  PIF_TRY_VALUE(auto operation, make_piece_writer(file, wanted, in, false));
  if (operation) return keep(file, std::move(operation));
  PIF_TRY(write_pieces(file, wanted, in));
  PIF_TRY_VALUE(const std::uint64_t bytes, bytes_of(wanted));
  return keep(file, std::make_unique<Done>(file, bytes));
}

Result<std::uint64_t> wait_for(FileState& file, File::Operation operation) {
  PIF_TRY(find(file, operation));
  const std::unique_ptr<AsyncOperation> taken = std::move(file.operations.extract(operation).mapped());
  PIF_TRY(taken->run());
  return taken->result();
}

bool is_done(FileState& file, File::Operation operation) {
  const auto found = find(file, operation);
  if (!found) return true;
  // Takes what has come, without waiting.
  if (!file.session->caller().pump(Time{})) return true;
  return (*found)->move_on();
}

Status finish_operations(FileState& file) {
  Status first;
  for (const auto& [number, operation] : file.operations) {
    auto status = operation->run();
    if (first && !status) first = std::move(status);
  }
  return first;
}

}  // namespace pif::client
