// Where records of CSV, FASTA and FASTQ end.
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/tool/csv.h"
#include "transfer/entries_import.h"

namespace pif::cli {
namespace {

tl::unexpected<Error> not_so(std::string text) { return fail(Code::kCorrupt, std::move(text)); }

class CsvCutter final : public RecordCutter {
 public:
  Status cut(std::string& text, bool is_last, std::vector<std::uint32_t>& lengths) override {
    std::size_t begin = 0;
    while (const auto end = records_.find_end(std::string_view(text).substr(scanned_))) {
      lengths.push_back(static_cast<std::uint32_t>(scanned_ + *end - begin));
      begin = scanned_ += *end;
    }
    if (is_last && begin < text.size()) {
      if (records_.is_quoted()) return not_so("a quote is not closed");
      text += '\n';
      lengths.push_back(static_cast<std::uint32_t>(text.size() - begin));
      begin = text.size();
    }
    scanned_ = text.size() - begin;
    return {};
  }

 private:
  tool::CsvRecords records_;
  std::size_t scanned_ = 0;  // of the text
};

class FastaCutter final : public RecordCutter {
 public:
  Status cut(std::string& text, bool is_last, std::vector<std::uint32_t>& lengths) override {
    if (!text.empty() && text[0] != '>') return not_so("does not begin with '>'");
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find("\n>", begin)) != std::string::npos; begin = end + 1)
      lengths.push_back(static_cast<std::uint32_t>(end + 1 - begin));
    if (is_last && begin < text.size()) lengths.push_back(static_cast<std::uint32_t>(text.size() - begin));
    return {};
  }
};

// One entry of FASTQ, line by line.
class FastqEntry {
 public:
  FastqEntry(std::string_view text, bool is_last) : rest_(text), is_last_(is_last) {}

  // Its bytes, with empty lines behind it; nothing: it ends in text that comes later.
  Result<std::optional<std::size_t>> size() {
    const std::size_t all = rest_.size();
    if (rest_[0] != '@') return not_so("does not begin with '@'");
    std::uint64_t letters = 0, qualities = 0;
    std::optional<std::string_view> line = take();
    while ((line = take()) && !line->starts_with('+')) letters += line->size();
    while (line && qualities < letters && (line = take())) qualities += line->size();
    if (!line && is_last_) return not_so("is cut off: a title, a sequence, a line with + and qualities are an entry");
    if (line && qualities != letters) return not_so(fmt::format("has {} letters and {} qualities", letters, qualities));
    std::string_view behind = rest_;
    while (line && (line = take()) && line->empty()) behind = rest_;
    const bool is_whole = line || is_last_;  // for an empty line may follow
    return is_whole ? std::optional(all - behind.size()) : std::nullopt;
  }

 private:
  // The next line, without its end; nothing: it is not whole, or there is none.
  std::optional<std::string_view> take() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos && (!is_last_ || rest_.empty())) return std::nullopt;
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  std::string_view rest_;
  const bool is_last_;
};

class FastqCutter final : public RecordCutter {
 public:
  Status cut(std::string& text, bool is_last, std::vector<std::uint32_t>& lengths) override {
    for (std::string_view rest = text; !rest.empty();) {
      PIF_TRY_VALUE(const auto size, FastqEntry(rest, is_last).size());
      if (!size) break;
      lengths.push_back(static_cast<std::uint32_t>(*size));
      rest.remove_prefix(*size);
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<RecordCutter> cutter_of(TextKind kind) {
  PIF_ASSERT(kind != TextKind::kPlain);
  if (kind == TextKind::kCsv) return std::make_unique<CsvCutter>();
  if (kind == TextKind::kFasta) return std::make_unique<FastaCutter>();
  return std::make_unique<FastqCutter>();
}

}  // namespace pif::cli
