#include "count.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "../counts/text_counts.h"
#include "../pif/transfer/header.h"
#include "pif/tool/head.h"

namespace pif::counts {
namespace {

constexpr std::string_view kWithLongest = "longest";  // what workers get if that line is wanted, too

// What a worker answers: the counts of each row one behind another, or, of lines, of all of them together; each as
// pack_head() makes them.
struct Counted {
  std::uint32_t lfs = 0;  // of the file
  std::uint64_t rows = 0;
  std::string counts;
  static auto members(auto& self) { return std::tie(self.lfs, self.rows, self.counts); }
};

std::size_t packed_size() { return tool::pack_head(TextCounts()).size(); }

What what_of(bool longest) { return longest ? What::kWordsAndLongest : What::kWords; }

// A line is counted alone: whatever is before it has ended, and it ends itself.
bool are_lines(const Format& format) { return format == Format::lines(); }

Status check_rows(const File& file, const FileLength& file_length, const std::string& path) {
  const std::uint64_t rows = file_length.records / file.layout().width() + file.layout().width();
  if (are_lines(file.format()) || rows < tool::kJobResultBytesMax / packed_size()) return {};
  return fail(Code::kUnsupported, fmt::format("{}: its {} records are too many for workers to tell of each how it "
                                              "begins and ends",
                                              path, file_length.records));
}

// The counts of one LFS's rows, in order; taken one by one.
class Part {
 public:
  explicit Part(Counted counted) : counted_(std::move(counted)) {}
  LfsIndex lfs() const { return counted_.lfs; }
  bool is_over() const { return at_ == counted_.counts.size(); }
  Result<TextCounts> next() {
    const auto counts = tool::unpack_head<TextCounts>(std::string_view(counted_.counts).substr(at_, packed_size()));
    at_ = std::min(at_ + packed_size(), counted_.counts.size());
    if (counts) return *counts;
    return fail(Code::kCorrupt, fmt::format("the counts of LFS {} of the file are no counts", counted_.lfs));
  }

 private:
  Counted counted_;
  std::size_t at_ = 0;
};

Result<std::vector<std::optional<Part>>> parts_by_lfs(const std::vector<std::string>& results, std::uint32_t width) {
  std::vector<std::optional<Part>> parts(width);
  for (const std::string& result : results) {
    auto counted = tool::unpack_head<Counted>(result);
    if (!counted || counted->lfs >= width) return fail(Code::kCorrupt, "a worker's answer is no count");
    const LfsIndex lfs = counted->lfs;
    if (counted->rows > 0) parts[lfs].emplace(std::move(*counted));
  }
  return parts;
}

struct Sum {
  std::uint64_t lines = 0, words = 0, longest = 0;
  void add(const TextCounts& counts) {
    lines += counts.lines();
    words += counts.words();
    longest = std::max(longest, counts.longest());
  }
};

// In any order, but that the header stands in front of record 0.
Result<Sum> sum_of_lines(std::vector<std::optional<Part>> parts, TextCounts header, LfsIndex first) {
  Sum sum;
  for (auto& part : parts) {
    if (!part) continue;
    PIF_TRY_VALUE(const TextCounts counts, part->next());
    if (part->lfs() == first) {
      header.add(counts);
    } else {
      sum.add(counts);
    }
  }
  sum.add(header);
  return sum;
}

Result<Sum> sum_of_rows(std::vector<std::optional<Part>> parts, TextCounts header, const parity::Layout& layout,
                        std::uint64_t records) {
  for (RecordNumber record = 0; record < records; ++record) {
    auto& part = parts[layout.locate(record).lfs];
    if (!part || part->is_over()) return fail(Code::kCorrupt, fmt::format("nobody has counted record {}", record));
    PIF_TRY_VALUE(const TextCounts counts, part->next());
    header.add(counts);
  }
  Sum sum;
  sum.add(header);
  return sum;
}

Status count_rows(tool::Worker& worker, tool::Input& input, What what, Counted& counted) {
  const bool by_row = !are_lines(input.format());
  TextCounts all;
  tool::RowBatch batch;
  while (true) {
    PIF_TRY_VALUE(const bool more, input.next(batch));
    if (!more) break;
    counted.rows += batch.count;
    if (by_row) {
      batch.for_each([&](std::span<const std::byte> record) {
        TextCounts counts;
        counts.add(record, what);
        counted.counts += tool::pack_head(counts);
      });
    } else {
      all.add(batch.data, what);
    }
    worker.progress(input.bytes_read(), input.bytes());
  }
  if (!by_row) counted.counts = tool::pack_head(all);
  return {};
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const CountOptions& options) {
  PIF_TRY_VALUE(const std::string path, tool::pif_path(options.path));
  PIF_TRY_VALUE(const std::size_t input, controller.open(path));
  File& file = controller.input(input);
  PIF_TRY_VALUE(const FileLength file_length, file.file_length());
  PIF_TRY(check_rows(file, file_length, path));
  TextCounts header;
  if (const auto found = file.attributes().find(std::string(cli::kHeaderAttribute)); found != file.attributes().end())
    header.add(std::as_bytes(std::span(found->second)), what_of(options.longest));
  tool::Job job;
  if (options.longest) job.value = kWithLongest;
  PIF_TRY_VALUE(const auto results, controller.run(job));
  const parity::Layout& layout = file.layout();
  PIF_TRY_VALUE(auto parts, parts_by_lfs(results, layout.width()));
  PIF_TRY_VALUE(const Sum sum, are_lines(file.format())
                                   ? sum_of_lines(std::move(parts), header, layout.locate(0).lfs)
                                   : sum_of_rows(std::move(parts), header, layout, file_length.records));
  tool::Report& report = controller.report();
  report.add_result("lines", sum.lines);
  report.add_result("words", sum.words);
  if (options.longest) report.add_result("longest", sum.longest);
  if (report.is_json) return tool::ExitCode::kDone;
  std::cout << sum.lines << ' ' << sum.words;
  if (options.longest) std::cout << ' ' << sum.longest;
  std::cout << '\n' << std::flush;
  return tool::ExitCode::kDone;
}

Status work(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  Counted counted;
  if (input->is_here()) {
    counted.lfs = input->index();
    if (input->rows() > 0) PIF_TRY(count_rows(worker, *input, what_of(worker.value() == kWithLongest), counted));
  }
  worker.set_result(tool::pack_head(counted));
  return {};
}

}  // namespace pif::counts
