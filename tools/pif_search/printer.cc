#include "printer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include <fmt/format.h>

namespace pif::search {
namespace {

// A pipe that can be written to takes so much without waiting (PIPE_BUF).
constexpr std::size_t kPipeBytes = 4096;
constexpr std::uint64_t kNeighboursAtOnce = 4096;
constexpr std::uint64_t kReadBytes = 1u << 20;

}  // namespace

Status SlowOutput::write_once(int wait_ms, bool& is_written) {
  is_written = false;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, wait_ms) <= 0) return {};
  const ssize_t written = ::write(STDOUT_FILENO, waiting_.data() + at_, std::min(waiting_.size() - at_, kPipeBytes));
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (written < 0 && errno == EPIPE) return fail(Code::kCancelled, "nobody reads standard output any more");
  if (written < 0) return fail_errno(errno, "cannot write to standard output");
  is_written = true;
  at_ += static_cast<std::size_t>(written);
  if (at_ > kBytesMax || at_ == waiting_.size()) {
    waiting_.erase(0, at_);
    at_ = 0;
  }
  return {};
}

Status SlowOutput::push() {
  for (bool goes_on = true; goes_on && at_ < waiting_.size();) PIF_TRY(write_once(0, goes_on));
  return {};
}

Status SlowOutput::finish() {
  for (bool is_written = false; at_ < waiting_.size();) PIF_TRY(write_once(1000, is_written));
  return {};
}

void Printer::add(RecordNumber number, std::string_view record, char mark) {
  std::string line;
  if (!options_.name.empty()) line += options_.name + mark;
  if (options_.numbers) line += fmt::format("{}{}", number + 1, mark);
  line += record;
  if (!record.ends_with('\n')) line += '\n';
  output_.add(line);
}

Result<RecordBatch> Printer::read(RecordNumber begin, std::uint64_t count) {
  const Format format = file_.format();
  if (!format.is_fixed()) return file_.read_batch_at(begin, count);
  RecordBatch batch;
  const std::uint64_t fits = std::min(count, std::max<std::uint64_t>(1, kReadBytes / format.record_length));
  for (std::uint64_t i = 0; i < fits; ++i)
    batch.lengths.push_back(fixed_record_bytes(format.record_length, file_length_, begin + i));
  batch.data.resize(std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::size_t{0}));
  PIF_TRY(file_.read_at(begin, batch.data, fits));
  return batch;
}

Status Printer::print_neighbours(RecordNumber begin, RecordNumber end) {
  while (begin < end) {
    const std::uint64_t count = std::min(end - begin, kNeighboursAtOnce);
    PIF_TRY_VALUE(const RecordBatch batch, read(begin, count));
    if (batch.lengths.empty()) break;
    std::string_view rest(reinterpret_cast<const char*>(batch.data.data()), batch.data.size());
    for (const std::uint32_t length : batch.lengths) {
      add(begin++, rest.substr(0, length), '-');
      rest.remove_prefix(length);
    }
  }
  next_ = end;
  return {};
}

Status Printer::end() {
  if (!last_ || options_.after == 0) return {};
  return print_neighbours(next_, std::min(file_length_.records, *last_ + 1 + options_.after));
}

Status Printer::print(RecordNumber number, std::string_view record) {
  const bool has_neighbours = options_.before > 0 || options_.after > 0;
  if (has_neighbours && last_ != number) {
    const RecordNumber begin = number - std::min(number, options_.before);
    if (last_) PIF_TRY(print_neighbours(next_, std::min(number, *last_ + 1 + options_.after)));
    if (last_ ? begin > next_ : options_.is_next) output_.add("--\n");
    PIF_TRY(print_neighbours(std::max(begin, next_), number));
  }
  add(number, record, ':');
  last_ = number;
  next_ = number + 1;
  return {};
}

}  // namespace pif::search
