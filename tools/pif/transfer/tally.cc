#include "transfer/tally.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {

Tally::Tally(const Program& program, std::string what) : program_(program), what_(std::move(what)) { expect(0); }

void Tally::expect(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  progress_.emplace(what_, bytes, !program_.common.quiet);
}

void Tally::done(const std::string& local, std::uint64_t bytes, const std::function<Json()>& document) {
  const std::lock_guard lock(mutex_);
  ++files_;
  bytes_ += bytes;
  if (program_.common.json) documents_.emplace_back(local, document());
}

void Tally::skipped() {
  const std::lock_guard lock(mutex_);
  ++skipped_;
}

void Tally::left_out_link() {
  const std::lock_guard lock(mutex_);
  ++links_;
}

void Tally::incomplete(const std::string& text) {
  const std::lock_guard lock(mutex_);
  incomplete_.push_back(text);
}

void Tally::show(std::uint64_t more) {
  const std::lock_guard lock(mutex_);
  progress_->set(moved_ += more);
}

BulkOptions Tally::options(const std::atomic<bool>* cancel) {
  BulkOptions options;
  options.progress = [this, before = std::make_shared<std::uint64_t>(0)](const BulkCounts& now, std::uint64_t) {
    show(now.bytes - std::min(now.bytes, *before));
    *before = now.bytes;
  };
  options.cancel = cancel;
  return options;
}

Outcome Tally::report() {
  const std::chrono::duration<double> elapsed = Progress::Clock::now() - started_;
  progress_.reset();  // wipes its line
  if (program_.common.verbose)
    print_error(fmt::format("pif: {} files, {} in {}{}\n", files_, human_bytes(bytes_), human_time(elapsed),
                            skipped_ == 0 ? "" : fmt::format("; {} were there already", skipped_)));
  if (links_ > 0 && !program_.common.quiet) print_error(fmt::format("pif: {} links were left out\n", links_));
  if (program_.common.json) {
    const auto in_order = [](const auto& a, const auto& b) {
      return std::filesystem::path(a.first) < std::filesystem::path(b.first);
    };
    std::stable_sort(documents_.begin(), documents_.end(), in_order);
    Json files = Json::array();
    for (auto& [local, document] : documents_) files.push_back(std::move(document));
    Json document = {
        {"files", std::move(files)}, {"bytes", bytes_}, {"seconds", elapsed.count()}, {"skipped", skipped_}};
    if (links_ > 0) document["links_left_out"] = links_;
    if (!incomplete_.empty()) document["incomplete"] = incomplete_;
    failures_.add_to(document);
    PIF_TRY(print(document));
  }
  for (const std::string& text : incomplete_) print_error(fmt::format("pif: {}\n", one_line(text)));
  failures_.sum_up();
  return failures_.is_empty() && !incomplete_.empty() ? ExitCode::kNegative : failures_.exit_code();
}

}  // namespace pif::cli
