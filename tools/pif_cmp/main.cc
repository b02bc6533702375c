// pif-cmp A B: whether two files have the same records, in whatever layouts; else where they differ first.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "../pif_digest/digest.h"
#include "pif/tool/read_records.h"
#include "pif/tool/tool_main.h"

namespace {

using pif::FileLength;
using pif::RecordBatch;
using pif::RecordNumber;
using pif::Result;
using pif::Status;

constexpr std::uint64_t kBlockRecords = 4096;    // that have one digest
constexpr std::uint64_t kBlocksMax = 256 << 10;  // of a file: larger ones have larger blocks

struct Options {
  std::string a, b;
};

// Records of a file one after another, read in batches.
class Records {
 public:
  Records(pif::File& file, const FileLength& file_length, RecordNumber begin, RecordNumber end)
      : file_(file), file_length_(file_length), next_(begin), end_(end) {}
  // The next one; there is one. Valid until the next call.
  Result<std::string_view> take() {
    if (at_ == batch_.lengths.size()) {
      PIF_TRY_VALUE(batch_, pif::tool::read_records(file_, file_length_, next_, end_ - next_));
      at_ = offset_ = 0;
      if (batch_.lengths.empty()) return pif::fail(pif::Code::kInternal, "a record that was there is not");
    }
    const std::string_view record(reinterpret_cast<const char*>(batch_.data.data()) + offset_, batch_.lengths[at_]);
    offset_ += batch_.lengths[at_++];
    ++next_;
    return record;
  }

 private:
  pif::File& file_;
  const FileLength file_length_;
  RecordNumber next_, end_;
  RecordBatch batch_;
  std::size_t at_ = 0, offset_ = 0;
};

class Comparison {
 public:
  Comparison(pif::tool::Controller& controller, const Options& options) : controller_(controller), options_(options) {}

  Result<pif::tool::ExitCode> run() {
    PIF_TRY_VALUE(lengths_[0], open(options_.a));
    PIF_TRY_VALUE(lengths_[1], open(options_.b));
    const std::uint64_t records = std::max(lengths_[0].records, lengths_[1].records);
    block_ = std::max(kBlockRecords, (records + kBlocksMax - 1) / kBlocksMax);
    PIF_TRY_VALUE(const auto digests, pif::digest::digests_of(controller_, 2, block_));
    const std::size_t blocks = std::min(digests[0].size(), digests[1].size());
    for (std::size_t i = 0; i < blocks; ++i)
      if (digests[0][i] != digests[1][i]) PIF_TRY(look_at(i));
    return tell();
  }

 private:
  Result<FileLength> open(const std::string& name) {
    PIF_TRY_VALUE(const std::string path, pif::tool::pif_path(name));
    PIF_TRY_VALUE(const std::size_t input, controller_.open(path));
    return controller_.input(input).file_length();
  }

  // A block that differs, or is longer in one of the files.
  Status look_at(std::size_t block) {
    if (controller_.is_cancelled()) return pif::fail(pif::Code::kCancelled, "interrupted");
    const RecordNumber begin = block * block_;
    const RecordNumber end = std::min({begin + block_, lengths_[0].records, lengths_[1].records});
    Records a(controller_.input(0), lengths_[0], begin, end), b(controller_.input(1), lengths_[1], begin, end);
    for (RecordNumber number = begin; number < end; ++number) {
      PIF_TRY_VALUE(const std::string_view from_a, a.take());
      PIF_TRY_VALUE(const std::string_view from_b, b.take());
      if (from_a == from_b) continue;
      ++different_;
      if (first_) continue;
      first_ = number;
      const auto at = std::mismatch(from_a.begin(), from_a.end(), from_b.begin(), from_b.end());
      first_byte_ = static_cast<std::uint64_t>(at.first - from_a.begin());
    }
    return {};
  }

  Result<pif::tool::ExitCode> tell() {
    const std::uint64_t a = lengths_[0].records, b = lengths_[1].records;
    auto& report = controller_.report();
    report.add_result("different", different_);
    if (first_) report.add_result("first", *first_ + 1);
    report.add_result("only_in_first", a - std::min(a, b));
    report.add_result("only_in_second", b - std::min(a, b));
    if (different_ == 0 && a == b) return pif::tool::ExitCode::kDone;
    std::string text;
    if (first_)
      text += fmt::format("{} {} differ: record {}, byte {}; {} of {} records\n", options_.a, options_.b, *first_ + 1,
                          first_byte_ + 1, different_, std::min(a, b));
    if (a != b)
      text += fmt::format("{} has {} records more\n", a > b ? options_.a : options_.b, std::max(a, b) - std::min(a, b));
    if (!report.is_json && !report.is_quiet) PIF_TRY(pif::tool::print(text));
    return pif::tool::ExitCode::kNegative;
  }

  pif::tool::Controller& controller_;
  const Options& options_;
  std::array<FileLength, 2> lengths_;
  std::uint64_t block_ = 0, different_ = 0, first_byte_ = 0;
  std::optional<RecordNumber> first_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto options = std::make_shared<Options>();
  pif::tool::Tool tool;
  tool.name = "pif-cmp";
  tool.summary = "Compares two files record by record, whatever their layouts: exit code 1 if they differ.";
  tool.examples =
      "  pif cmp /data /copy          the first difference, and how many records differ\n  pif cmp -q /a /b\n";
  tool.options = [options](CLI::App& app) {
    app.add_option("A", options->a, "a file")->required();
    app.add_option("B", options->b, "another one")->required();
  };
  tool.control = [options](pif::tool::Controller& controller) { return Comparison(controller, *options).run(); };
  tool.explain = [](pif::tool::Controller&) -> Result<pif::tool::Plan> {
    return pif::tool::Plan{{"reads", "both files, each where it lies"},
                           {"moved", "16 bytes for each 4096 records from each LFS, and blocks that differ"}};
  };
  tool.work = pif::digest::work;
  return pif::tool::main(argc, argv, tool);
}
