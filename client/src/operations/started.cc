#include "operations/started.h"

#include <limits>
#include <memory>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/piece_reader.h"
#include "file/piece_writer.h"
#include "operations/piece_io.h"
#include "pieces/async_operation.h"
#include "pif/base/assert.h"

namespace pif::client {

namespace {

constexpr std::size_t kOperationsMax = 1024;  // of one file

// Rows that go to the redo logs of LFSs.
class Overwriting : public AsyncOperation {
 public:
  Overwriting(FileState& file, std::uint64_t records)
      : AsyncOperation(*file.session, file.grant, false), file_(file), records_(records) {}

  [[nodiscard]] Status start(RecordNumber first, std::span<const std::byte> in) {
    return file_.overwriter.start(first, in, *requests_);
  }
  std::uint64_t result() const override { return records_; }

 private:
  Result<bool> next() override { return false; }
  FileState& file_;
  const std::uint64_t records_;
};

// What was done when it was started.
class Done : public AsyncOperation {
 public:
  Done(FileState& file, std::uint64_t result) : AsyncOperation(*file.session, file.grant, false), result_(result) {}
  std::uint64_t result() const override { return result_; }

 private:
  Result<bool> next() override { return false; }
  const std::uint64_t result_;
};

Result<File::Operation> keep(FileState& file, std::unique_ptr<AsyncOperation> operation) {
  PIF_ASSERT(operation != nullptr && !file.operations.contains(file.next_operation), file.next_operation);
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
  if (wanted.compiled_memory) return wanted.compiled_memory->compiled().bytes();
  PIF_TRY_VALUE(const auto memory, patterns::Compiled::make(wanted.memory));
  return memory.bytes();
}

Result<AsyncOperation*> find(FileState& file, File::Operation operation) {
  const auto found = file.operations.find(operation);
  if (found != file.operations.end()) return found->second.get();
  return fail(Code::kInvalid, fmt::format("{}: operation {} is not under way", file.parts.path, operation));
}

}  // namespace

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
  PIF_ASSERT(bytes <= out.size(), first, bytes, out.size());
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
  PIF_ASSERT(taken != nullptr, operation);
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

void drop_operations(FileState& file, File::Operation first) {
  file.operations.erase(file.operations.lower_bound(first), file.operations.end());
}

}  // namespace pif::client
