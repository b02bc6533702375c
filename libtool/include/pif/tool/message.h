// A tool's processes send one another messages of the tool's own .proto file, heads of channels (head.h), or packed
// numbers (pif/base/packed.h). All of it comes from another process: it can be wrong, and that is an error which says
// who sent it. Pure; any thread.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif::tool {

// "worker 3": a sender in what follows.
std::string worker_name(std::uint32_t rank);

// kCorrupt: "worker 3 sent nonsense: a row that is not there".
[[nodiscard]] tl::unexpected<Error> sent_nonsense(std::string_view sender, std::string_view what);
[[nodiscard]] tl::unexpected<Error> sent_nonsense(std::uint32_t rank, std::string_view what);

// The error of a check of its words: kInvalid becomes sent_nonsense(); any other error stays as it is.
[[nodiscard]] tl::unexpected<Error> sent_wrong(std::uint32_t rank, const Error& error);

// The message in these bytes; kCorrupt, naming the sender, if they are none. Its fields are still to be checked.
// Message: of protobuf.
template <typename Message>
[[nodiscard]] Result<Message> parse_message(std::string_view bytes, std::string_view sender) {
  Message message;
  if (bytes.size() > INT_MAX || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return sent_nonsense(sender, "its message cannot be read");
  return message;
}
template <typename Message>
[[nodiscard]] Result<Message> parse_message(std::string_view bytes, std::uint32_t rank) {
  return parse_message<Message>(bytes, worker_name(rank));
}

}  // namespace pif::tool
