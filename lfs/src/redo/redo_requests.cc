#include "redo/redo_requests.h"

#include <bit>
#include <cstring>

#include "pif/base/assert.h"

namespace pif::lfs {

static_assert(std::endian::native == std::endian::little, "keys are stored as they are in memory");

void LoggedRequests::append(const LoggedRequests& later) {
  forgotten.insert(forgotten.end(), later.forgotten.begin(), later.forgotten.end());
  done.insert(done.end(), later.done.begin(), later.done.end());
}

std::vector<std::byte> encode_requests(const LoggedRequests& requests) {
  const std::uint64_t forgotten = requests.forgotten.size();
  const std::size_t forgotten_bytes = forgotten * sizeof(RequestKey);
  const std::size_t done_bytes = requests.done.size() * sizeof(RequestKey);
  std::vector<std::byte> out(sizeof forgotten + forgotten_bytes + done_bytes);
  std::memcpy(out.data(), &forgotten, sizeof forgotten);
  if (forgotten > 0) std::memcpy(out.data() + sizeof forgotten, requests.forgotten.data(), forgotten_bytes);
  if (done_bytes > 0) std::memcpy(out.data() + sizeof forgotten + forgotten_bytes, requests.done.data(), done_bytes);
  PIF_ASSERT(out.size() == sizeof forgotten + forgotten_bytes + done_bytes, out.size());
  return out;
}

Result<LoggedRequests> decode_requests(std::span<const std::byte> data) {
  std::uint64_t forgotten = 0;
  if (data.size() >= sizeof forgotten) std::memcpy(&forgotten, data.data(), sizeof forgotten);
  const bool has_count = data.size() >= sizeof forgotten;
  const std::size_t keys = has_count ? (data.size() - sizeof forgotten) / sizeof(RequestKey) : 0;
  if (!has_count || data.size() != sizeof forgotten + keys * sizeof(RequestKey) || forgotten > keys)
    return fail(Code::kCorrupt, "the redo log has an entry of requests that cannot be read");
  LoggedRequests out;
  out.forgotten.resize(forgotten);
  out.done.resize(keys - forgotten);
  const auto read = [&](std::vector<RequestKey>& to, std::size_t first) {
    if (!to.empty())
      std::memcpy(to.data(), data.data() + sizeof forgotten + first * sizeof(RequestKey),
                  to.size() * sizeof(RequestKey));
  };
  read(out.forgotten, 0);
  read(out.done, forgotten);
  return out;
}

}  // namespace pif::lfs
