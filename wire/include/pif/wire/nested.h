// A message that travels as bytes within another one, because it has very many small ones in it (docs/PROTOCOL.md,
// StatResults and EntryList). They live in one piece of memory, and die at once. One thread at a time.
#pragma once

#include <string>

#include <google/protobuf/arena.h>

#include "pif/base/result.h"

namespace pif::wire {

template <typename Message>
class Nested {
 public:
  // kCorrupt: the bytes are no such message; `what` says whose.
  [[nodiscard]] Status parse(const std::string& bytes, const std::string& what) {
    if (message_.ParseFromString(bytes)) return {};
    return fail(Code::kCorrupt, what + " is no message that can be read: run `pif fsck`");
  }
  const Message& operator*() const { return message_; }
  const Message* operator->() const { return &message_; }

 private:
  google::protobuf::Arena arena_;
  Message& message_ = *google::protobuf::Arena::CreateMessage<Message>(&arena_);
};

}  // namespace pif::wire
