// Which requests an entry of the redo log says are done, and which are too old to be known (docs/FORMAT.md "Redo
// log"). Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pif/base/result.h"

namespace pif::lfs {

// A session's request number; session 0: nobody knows whose it is, so nothing is remembered.
struct RequestKey {
  std::uint64_t session = 0;
  std::uint64_t request = 0;
  auto operator<=>(const RequestKey&) const = default;
};
static_assert(sizeof(RequestKey) == 16);

struct RequestKeyHash {
  std::size_t operator()(const RequestKey& key) const {
    return static_cast<std::size_t>((key.session ^ (key.request * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u);
  }
};

struct LoggedRequests {
  std::vector<RequestKey> forgotten;  // of each sender the newest that was done and is not known any more
  std::vector<RequestKey> done;       // in the order in which they were

  void append(const LoggedRequests& later);
};

std::vector<std::byte> encode_requests(const LoggedRequests& requests);
// kCorrupt: data is not what encode_requests() gives.
[[nodiscard]] Result<LoggedRequests> decode_requests(std::span<const std::byte> data);

}  // namespace pif::lfs
