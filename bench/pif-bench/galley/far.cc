// 64 MiB at 64 GiB of a new file take no longer than at its beginning: what is in front takes neither time nor room.
#include <algorithm>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/need.h"
#include "harness.h"

namespace pif::bench {
namespace {

constexpr std::uint64_t kFar = 64ull << 30;
constexpr std::uint64_t kSeed = 7;

// Seconds until they are durable and committed. What is read of it is compared, and some of what is in front.
double write_at(Client& client, const std::vector<std::byte>& bytes, std::uint64_t offset) {
  File file = need(client.create("/far"));
  const double start = now();
  need(file.pwrite(bytes, offset));
  need(file.commit());
  const double seconds = now() - start;
  File whole = need(client.open("/far"));
  std::vector<std::byte> found(bytes.size());
  if (need(whole.pread(found, offset)) != bytes.size() || found != bytes) die("what was written far away is not there");
  for (std::uint64_t at = 0; at < offset; at += offset / 16) {
    need(whole.pread(std::span(found).first(4096), at));
    if (std::any_of(found.begin(), found.begin() + 4096, [](std::byte b) { return b != std::byte{0}; }))
      die("there are no zeros in front of what was written");
  }
  need(whole.close());
  need(client.remove("/far"));
  return seconds;
}

void measure(Context& c, const System& system, bool by_message) {
  Client client = by_message ? connect_to(system.folder(), DataPath::kMessages, "ipc")
                             : connect_to(system.folder(), DataPath::kDescriptors);
  std::vector<std::byte> bytes(std::min<std::uint64_t>(c.options.bytes, 64u << 20));
  fill_contents(bytes, 0, kSeed);
  std::vector<double> near, far, more;
  for (unsigned round = 0; round < c.options.repeats; ++round) {
    system.settle();
    near.push_back(write_at(client, bytes, 0));
    system.settle();
    far.push_back(write_at(client, bytes, kFar));
    more.push_back(far.back() - near.back());
  }
  c.report.add({fmt::format("64 MiB at 64 GiB, {}: seconds more", by_message ? "messages" : "descriptors"),
                seconds_text(median(far)), seconds_text(median(near)), median(more), 1, false, ""});
}

}  // namespace

void bench_galley_far(Context& c) {
  const System system(c.options, "galley", 4, {}, c.watch);
  measure(c, system, false);
  measure(c, system, true);
}

}  // namespace pif::bench
