#include "session/member_watch.h"
#include "pif/base/assert.h"

#include <utility>

namespace pif::client {

MemberWatch::~MemberWatch() {
  if (call_) caller_.calls().forget(*call_);
}

void MemberWatch::take(Result<net::Packet> reply) {
  PIF_ASSERT(call_.has_value(), answers_);
  call_.reset();
  if (!reply) return;  // the next look asks again
  newest_ = std::move(*reply->envelope.mutable_nodes_reply());
  ++answers_;
}

std::uint64_t MemberWatch::look() {
  static_cast<void>(caller_.pump(Time{}).has_value());
  const Time now = caller_.messenger().clock().now();
  if (call_ || now < not_before_) return answers_;
  not_before_ = now + kEvery;
  net::Packet request;
  request.envelope.mutable_nodes();
  call_ = server_.start(std::move(request), [this](Result<net::Packet> reply) { take(std::move(reply)); });
  return answers_;
}

}  // namespace pif::client
