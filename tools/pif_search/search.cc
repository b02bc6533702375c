#include "search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "../pif/names/entries.h"
#include "../pif/text/text.h"
#include "pif/base/packed.h"
#include "pif/tool/head.h"
#include "pif/tool/output_options.h"
#include "printer.h"

namespace pif::search {
namespace {

constexpr std::size_t kFilesAtOnce = 64;  // of one job

class Search {
 public:
  Search(tool::Controller& controller, const SearchOptions& options) : controller_(controller), options_(options) {}

  Result<tool::ExitCode> run() {
    PIF_TRY(Matcher::compile(options_.query, Format::lines()));  // what is no pattern is said before anything is opened
    for (const std::string& file : options_.files) PIF_TRY(add_operand(file));
    has_names_ = options_.names || (!options_.no_names && (paths_.size() > 1 || has_folder_));
    for (std::size_t begin = 0; begin < paths_.size() && !had_enough_; begin += kFilesAtOnce)
      PIF_TRY(search(begin, std::min(paths_.size(), begin + kFilesAtOnce)));
    PIF_TRY(output_.finish());
    controller_.report().add_result("records", total_);
    controller_.report().add_result("files", matching_files_);
    return total_ > 0 ? tool::ExitCode::kDone : tool::ExitCode::kNegative;
  }

 private:
  Status add_operand(const std::string& name) {
    PIF_TRY_VALUE(const std::string path, tool::pif_path(name));
    PIF_TRY_VALUE(const Entry entry, controller_.client().stat(path));
    if (entry.kind != EntryKind::kFolder) return add_file(path, entry, true);
    has_folder_ = true;
    return add_folder(path);
  }

  Status add_folder(const std::string& path) {
    return cli::for_each_entry(controller_.client(), path, [&](const Entry& entry) -> Status {
      if (controller_.is_cancelled()) return fail(Code::kCancelled, "interrupted");
      const std::string below = cli::join_path(path, entry.name);
      return entry.kind == EntryKind::kFolder ? add_folder(below) : add_file(below, entry, false);
    });
  }

  // Of a folder only what has records counts.
  Status add_file(const std::string& path, const Entry& entry, bool is_named) {
    const bool has_records = entry.kind == EntryKind::kFile && !entry.is_placed;
    if (has_records) paths_.push_back(path);
    if (has_records || !is_named) return {};
    return fail(Code::kUnsupported, fmt::format("{}: it has no records to be searched", path));
  }

  bool prints_records() const { return !options_.query.count && !controller_.report().is_json; }

  Status search(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) PIF_TRY(controller_.open(paths_[i], Client::Mode::kRead));
    taken_.assign(end - begin, 0);
    tool::Job job{.value = tool::pack_head(options_.query)};
    job.stream.take = [&](tool::StreamKey key, std::string_view bytes) { return take(begin, key, bytes); };
    job.stream.is_full = [this] { return output_.is_full(); };
    job.stream.pause = [this] { return output_.push(); };
    PIF_TRY_VALUE(const auto results, controller_.run(job));
    PIF_TRY(end_file());
    PIF_TRY(add_counts(results));
    for (std::size_t i = begin; i < end; ++i) PIF_TRY(tell_count(paths_[i], taken_[i - begin]));
    controller_.close_inputs();
    return output_.push();
  }

  Result<bool> take(std::size_t begin, tool::StreamKey key, std::string_view bytes) {
    PIF_TRY(output_.written());
    if (key.input >= taken_.size()) return fail(Code::kInternal, "a worker names a file that it was not given");
    const bool is_new = !(last_ && *last_ == key);
    if (is_new && options_.query.max > 0 && taken_[key.input] >= options_.query.max) return true;
    if (is_new) ++taken_[key.input];
    if (options_.quiet) {
      had_enough_ = true;
      return false;
    }
    if (prints_records()) {
      if (!last_ || last_->input != key.input) PIF_TRY(begin_file(begin, key.input));
      PIF_TRY(printer_->print(key.record, bytes));
    }
    last_ = key;
    return true;
  }

  Status begin_file(std::size_t begin, std::uint32_t input) {
    PIF_TRY(end_file());
    File& file = controller_.input(input);
    PIF_TRY_VALUE(const FileLength file_length, file.file_length());
    PrintOptions print;
    if (has_names_) print.name = paths_[begin + input];
    print.numbers = options_.numbers;
    print.before = options_.before;
    print.after = options_.after;
    print.is_next = std::exchange(has_printed_, true);
    printer_.emplace(output_, file, std::move(print), file_length);
    return {};
  }
  Status end_file() {
    const Status ended = printer_ ? printer_->end() : Status();
    printer_.reset();
    last_.reset();
    return ended;
  }

  Status add_counts(const std::vector<std::string>& results) {
    for (const std::string& result : results) {
      if (!options_.query.count) break;
      const auto counts = PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(result)), taken_.size());
      if (!counts) return fail(Code::kInternal, "a worker's counts cannot be read");
      for (std::size_t i = 0; i < taken_.size(); ++i) taken_[i] += (*counts)[i];
    }
    for (std::uint64_t& taken : taken_) {
      if (options_.query.max > 0) taken = std::min(taken, options_.query.max);
    }
    return {};
  }

  Status tell_count(const std::string& path, std::uint64_t count) {
    total_ += count;
    matching_files_ += count > 0 ? 1 : 0;
    if (!options_.query.count || options_.quiet || controller_.report().is_json) return {};
    if (options_.list && count > 0) output_.add(path + "\n");
    if (!options_.list) output_.add(has_names_ ? fmt::format("{}:{}\n", path, count) : fmt::format("{}\n", count));
    return {};
  }

  tool::Controller& controller_;
  const SearchOptions& options_;
  std::vector<std::string> paths_;
  bool has_folder_ = false, has_names_ = false;
  tool::SlowOutput output_;
  std::optional<Printer> printer_;       // of the file that is being printed
  std::optional<tool::StreamKey> last_;  // that was taken
  std::vector<std::uint64_t> taken_;     // records, by file of this job
  std::uint64_t total_ = 0, matching_files_ = 0;
  bool has_printed_ = false, had_enough_ = false;
};

}  // namespace

namespace {

// A file like the one that is searched, of the records that match, or of a line for each match.
Result<tool::ExitCode> search_to_file(tool::Controller& controller, const SearchOptions& options) {
  if (options.files.size() != 1)
    return fail(Code::kInvalid, "--to takes what is found in one file: search the files one by one");
  PIF_TRY_VALUE(const std::string source, tool::pif_path(options.files.front()));
  PIF_TRY_VALUE(const std::string target, tool::pif_path(options.to));
  if (target == source) return fail(Code::kInvalid, fmt::format("{} is the file that is searched", target));
  PIF_TRY_VALUE(const std::size_t input, controller.open(source));
  PIF_TRY_VALUE(CreateOptions create, tool::options_of_output(controller, input, source, {}));
  if (options.query.only_match && !options.query.invert) create.format = Format::lines();
  PIF_TRY(Matcher::compile(options.query, controller.input(input).format()));
  PIF_TRY(controller.create(target, create));
  PIF_TRY_VALUE(const auto results, controller.run({.value = tool::pack_head(options.query)}));
  std::uint64_t total = 0;
  for (const std::string& result : results) {
    const auto count = PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(result)), 1);
    if (!count) return fail(Code::kInternal, "a worker's count cannot be read");
    total += (*count)[0];
  }
  PIF_TRY(controller.commit());
  controller.report().add_result("records", total);
  return total > 0 ? tool::ExitCode::kDone : tool::ExitCode::kNegative;
}

}  // namespace

Result<tool::ExitCode> control(tool::Controller& controller, const SearchOptions& options) {
  if (options.query.to_file) return search_to_file(controller, options);
  return Search(controller, options).run();
}

}  // namespace pif::search
