#include "worker/trace.h"

#include <algorithm>
#include <utility>

#include "pif/base/assert.h"

namespace pif::tool {

void Trace::add(const std::string& name, Time begin, std::uint64_t bytes, std::optional<std::uint32_t> other) {
  using std::chrono::microseconds;
  const Time end = clock_.now();
  PIF_ASSERT(begin <= end, (end - begin).count());
  const std::lock_guard lock(mutex_);
  if (spans_.size() >= kSpansMax) {
    ++left_out_;
    return;
  }
  const auto thread = std::find(threads_.begin(), threads_.end(), std::this_thread::get_id());
  const auto number = static_cast<std::uint32_t>(thread - threads_.begin());
  if (thread == threads_.end()) threads_.push_back(std::this_thread::get_id());
  job::Span& span = spans_.emplace_back();
  span.set_name(name);
  span.set_begin((begin.time_since_epoch().count() + to_wall_) / 1000);
  span.set_length(static_cast<std::uint32_t>(std::min<std::int64_t>((end - begin) / microseconds(1), UINT32_MAX)));
  span.set_thread(number);
  span.set_bytes(bytes);
  if (other) span.set_other(*other);
}

void Trace::end_phase() {
  if (!phase_.empty()) add(std::exchange(phase_, {}), phase_begin_, 0);
}

void Trace::begin_phase(const std::string& name) {
  end_phase();
  phase_ = name;
  phase_begin_ = now();
}

void Trace::add_to(job::WorkerEnd& end) {
  end_phase();
  const std::lock_guard lock(mutex_);
  for (job::Span& span : spans_) *end.add_spans() = std::move(span);
  end.set_spans_left_out(left_out_);
  spans_.clear();
}

}  // namespace pif::tool
