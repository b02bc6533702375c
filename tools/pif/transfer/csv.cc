#include "transfer/csv.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "command/io.h"
#include "pif/base/limits.h"
#include "pif/tool/csv.h"

namespace pif::cli {
namespace {

constexpr std::size_t kCsvBytesAtOnce = 4u << 20;

// Cuts the stream into records and writes them in batches.
class CsvImport {
 public:
  CsvImport(File& file, int fd, const std::string& name) : file_(file), fd_(fd), name_(name) {}

  // The next ones. False: there are no more.
  Result<bool> step() {
    const std::size_t left = text_.size(), room = std::max(kCsvBytesAtOnce, left);
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
    std::size_t begin = 0;
    while (const auto end = records_.find_end(std::string_view(text_).substr(scanned_))) {
      lengths.push_back(static_cast<std::uint32_t>(scanned_ + *end - begin));
      begin = scanned_ += *end;
    }
    scanned_ = text_.size();
    if (is_last && begin < text_.size()) {
      if (records_.is_quoted())
        return fail(Code::kCorrupt, fmt::format("{}: a quote of the last record, {}, is not closed", name_,
                                                done_.records + lengths.size() + 1));
      text_ += '\n';
      lengths.push_back(static_cast<std::uint32_t>(text_.size() - begin));
      begin = text_.size();
    }
    if (text_.size() - begin > kRecordLengthMax)
      return fail(Code::kTooLarge, fmt::format("{}: record {} is longer than {} bytes: is a quote not closed?", name_,
                                               done_.records + lengths.size() + 1, kRecordLengthMax));
    const auto made = std::as_bytes(std::span(text_)).first(begin);
    if (!lengths.empty()) PIF_TRY(file_.write_batch(lengths, made));
    done_.bytes += begin;
    done_.records += lengths.size();
    text_.erase(0, begin);
    scanned_ = text_.size();
    return {};
  }

  File& file_;
  int fd_;
  const std::string& name_;
  tool::CsvRecords records_;
  std::string text_;         // not written yet; begins with a record
  std::size_t scanned_ = 0;  // of it
  BulkCounts done_;
};

}  // namespace

Result<BulkCounts> import_csv(File& file, int fd, const std::string& name, const BulkOptions& options) {
  CsvImport import(file, fd, name);
  for (bool more = true; more;) {
    if (options.cancel != nullptr && *options.cancel) return fail(Code::kCancelled, "cancelled");
    PIF_TRY_VALUE(more, import.step());
    if (options.progress) options.progress(import.done(), 0);
  }
  return import.done();
}

}  // namespace pif::cli
