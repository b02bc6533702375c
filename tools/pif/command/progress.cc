#include "command/progress.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr const char* kWipe = "\r\x1b[K";

}  // namespace

Progress::Progress(std::string what, std::uint64_t total_bytes, bool wanted)
    : what_(quoted_name(what)), total_(total_bytes), shown_(wanted && ::isatty(2) == 1) {}

Progress::~Progress() {
  if (dirty_) print_error(kWipe);
}

std::string Progress::line(const std::string& what, std::uint64_t done, std::uint64_t total,
                           std::chrono::duration<double> elapsed) {
  std::string out = what + " " + human_bytes(done);
  const double seconds = elapsed.count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  if (total > 0) out += fmt::format(" {}%", done >= total ? 100 : done * 100 / total);
  if (rate >= 1) out += fmt::format(" {}/s", human_bytes(static_cast<std::uint64_t>(rate)));
  if (total > done && rate >= 1)
    out += fmt::format(" {} left", human_time(std::chrono::duration<double>(static_cast<double>(total - done) / rate)));
  return out;
}

void Progress::set(std::uint64_t done_bytes) {
  if (!shown_) return;
  const auto now = Clock::now();
  if (now - last_ < kInterval) return;
  last_ = now;
  dirty_ = true;
  print_error(kWipe + line(what_, done_bytes, total_, now - started_));
}

BulkOptions options_with(Progress& progress, const std::atomic<bool>* cancel) {
  BulkOptions options;
  options.progress = [&progress](const BulkCounts& done, std::uint64_t) { progress.set(done.bytes); };
  options.cancel = cancel;
  return options;
}

}  // namespace pif::cli
