#include "report/terminal.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "pif/base/print.h"

namespace pif::tool {
namespace {

constexpr Duration kRedrawEvery = std::chrono::milliseconds(200);

}  // namespace

void ProgressLine::show(std::uint64_t bytes_done, std::uint64_t bytes_total) {
  const Time now = clock_.now();
  if (!visible_ || bytes_total == 0 || now < next_) return;
  next_ = now + kRedrawEvery;
  const double share = std::min(1.0, static_cast<double>(bytes_done) / static_cast<double>(bytes_total));
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - start_).count());
  const double rate = static_cast<double>(bytes_done) / seconds;
  const double left = rate > 0 ? static_cast<double>(bytes_total) * (1 - share) / rate : 0;
  print_error(fmt::format("\r{:3.0f} %  {:.0f} MiB/s  {:.0f} s left \x1b[K", share * 100, rate / (1 << 20), left));
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  print_error("\r\x1b[K");
  drawn_ = false;
}

}  // namespace pif::tool
