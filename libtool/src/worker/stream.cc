#include "pif/tool/stream.h"

#include "messages/frames.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "worker/worker_impl.h"

namespace pif::tool {
namespace {

// Others wait for word of how far this worker is.
constexpr Duration kSendEvery = std::chrono::milliseconds(20);

}  // namespace

void RecordStream::add_frame(StreamKey key, std::uint32_t length) {
  PIF_ASSERT(passed_ <= key, key.input, key.record);
  waiting_ += pack_head(FrameHead{key.input, key.record, length});
  passed_ = key;
}

Status RecordStream::put(StreamKey key, std::span<const std::byte> bytes) {
  PIF_ASSERT(bytes.size() < FrameHead::kPassed, bytes.size());
  add_frame(key, static_cast<std::uint32_t>(bytes.size()));
  waiting_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return waiting_.size() < kJobPartBytes ? Status() : send();
}

Status RecordStream::pass(StreamKey key) {
  const bool is_due = worker_.clock().now() - sent_ >= kSendEvery;
  if (!is_due || passed_ == key) return {};
  add_frame(key, FrameHead::kPassed);
  return send();
}

Status RecordStream::end() { return send(); }

Status RecordStream::send() {
  PIF_TRY(worker_.impl_->stream(waiting_));
  waiting_.clear();
  sent_ = worker_.clock().now();
  return {};
}

}  // namespace pif::tool
