#include "transfer/entries_import.h"

#include <algorithm>

#include <fmt/format.h>

#include "command/io.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::cli {
namespace {

constexpr std::size_t kTextBytesAtOnce = 4u << 20;

// Reads the stream, has it cut into records, and writes them in batches.
class EntriesImport {
 public:
  EntriesImport(File& file, int fd, TextKind kind, const std::string& name)
      : file_(file), fd_(fd), name_(name), cutter_(cutter_of(kind)) {}

  // The next ones. False: there are no more.
  Result<bool> step() {
    const std::size_t left = text_.size(), room = std::max(kTextBytesAtOnce, left);
    text_.resize(left + room);
    PIF_TRY_VALUE(const std::size_t got, read_full(fd_, std::as_writable_bytes(std::span(text_)).subspan(left), name_));
    text_.resize(left + got);
    const bool is_last = got < room;
    PIF_TRY(write_records(is_last));
    return !is_last;
  }
  const BulkCounts& done() const { return done_; }

 private:
  Status write_records(bool is_last) {
    std::vector<std::uint32_t> lengths;
    const Status cut = cutter_->cut(text_, is_last, lengths);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < lengths.size(); bytes += lengths[i++])
      if (lengths[i] > kRecordLengthMax) return too_long(i);
    if (!cut) return fail(cut.error().code, fmt::format("{}: {}", at(lengths.size()), cut.error().text));
    if (text_.size() - bytes > kRecordLengthMax) return too_long(lengths.size());
    PIF_ASSERT(!is_last || bytes == text_.size(), bytes, text_.size());
    if (!lengths.empty()) PIF_TRY(file_.write_batch(lengths, std::as_bytes(std::span(text_)).first(bytes)));
    done_.bytes += bytes;
    done_.records += lengths.size();
    text_.erase(0, bytes);
    return {};
  }
  std::string at(std::size_t i) const { return fmt::format("{}: record {}", name_, done_.records + i + 1); }
  tl::unexpected<Error> too_long(std::size_t i) const {
    return fail(Code::kTooLarge, fmt::format("{} is longer than {} bytes, which no record may be; as --lines it can be "
                                             "put if its lines are shorter",
                                             at(i), kRecordLengthMax));
  }

  File& file_;
  int fd_;
  const std::string& name_;
  const std::unique_ptr<RecordCutter> cutter_;
  std::string text_;  // not written yet; begins with a record
  BulkCounts done_;
};

}  // namespace

Result<BulkCounts> import_entries(File& file, int fd, TextKind kind, const std::string& name,
                                  const BulkOptions& options) {
  EntriesImport import(file, fd, kind, name);
  for (bool more = true; more;) {
    if (options.cancel != nullptr && *options.cancel) return fail(Code::kCancelled, "cancelled");
    PIF_TRY_VALUE(more, import.step());
    if (options.progress) options.progress(import.done(), 0);
  }
  return import.done();
}

}  // namespace pif::cli
