#include "file/async.h"

#include <limits>

#include <fmt/format.h>

namespace pif::client {

namespace {

constexpr std::size_t kOperationsMax = 1024;  // of one file

Result<File::Operation> keep(FileState& file, std::unique_ptr<AsyncOperation> operation) {
  const File::Operation number = file.next_operation++;
  file.operations.emplace(number, std::move(operation));
  return number;
}

Status check_room(const FileState& file) {
  if (file.operations.size() < kOperationsMax) return {};
  return fail(Code::kTooLarge,
              fmt::format("{}: {} operations are under way: wait for some", file.parts.path, kOperationsMax));
}

}  // namespace

Result<File::Operation> start_read(FileState& file, RecordNumber first, std::span<std::byte> out, std::uint64_t count) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  PIF_TRY(check_room(file));
  auto operation = std::make_unique<AsyncOperation>(file);
  if (file.scattered.is_on()) {
    PIF_TRY_VALUE(operation->records, file.reader.read(first, out, count));
    return keep(file, std::move(operation));
  }
  PIF_TRY_VALUE(operation->records, file.reader.clip(first, out.size(), count));
  std::vector<ReadPart> parts;
  file.reader.add_parts({first, first + operation->records}, out.data(), parts);
  PIF_TRY(file.reader.read_parts(parts, &operation->requests));
  return keep(file, std::move(operation));
}

Result<File::Operation> start_write(FileState& file, RecordNumber first, std::span<const std::byte> in) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  PIF_TRY(file.check_may_write());
  PIF_TRY(check_room(file));
  auto operation = std::make_unique<AsyncOperation>(file);
  const std::uint64_t length = file.parts.format.record_length;
  operation->records = length == 0 ? 0 : (in.size() + length - 1) / length;
  if (operation->records > std::numeric_limits<RecordNumber>::max() - first) PIF_TRY(file.past_end(first));
  bool inside = false;
  if (file.parts.format.is_fixed() && !file.creating() && !in.empty()) {
    PIF_TRY_VALUE(const FileLength now, file.length.for_records(first + operation->records));
    inside = first + operation->records <= now.records;
  }
  if (inside) {
    PIF_TRY(file.overwriter.start(first, in, operation->requests));
  } else {
    PIF_TRY(file.write(first, in));  // staged (a file being created), or an append, which is one exchange anyway
  }
  return keep(file, std::move(operation));
}

Result<std::uint64_t> wait_for(FileState& file, File::Operation operation) {
  const auto found = file.operations.find(operation);
  if (found == file.operations.end()) {
    return fail(Code::kInvalid, fmt::format("{}: operation {} is not under way", file.parts.path, operation));
  }
  const std::unique_ptr<AsyncOperation> taken = std::move(found->second);
  file.operations.erase(found);
  PIF_TRY(file.run(taken->requests));
  return taken->records;
}

bool is_done(FileState& file, File::Operation operation) {
  const auto found = file.operations.find(operation);
  if (found == file.operations.end()) return true;
  // Takes what has come, without waiting.
  if (!file.session->caller().pump(Time{})) return true;
  return !found->second->requests.step() || found->second->requests.idle();
}

}  // namespace pif::client
