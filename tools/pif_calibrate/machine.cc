#include "machine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <hwy/contrib/sort/vqsort.h>

#include "../pif_sort/runs/merge.h"
#include "calibrate.pb.h"
#include "pif/tool/channel.h"
#include "pif/tool/message.h"
#include "pif/tool/team.h"

namespace pif::calibrate {
namespace {

constexpr int kRepeats = 3;                      // of which the median counts
constexpr std::size_t kMemoryBytes = 32u << 20;  // more than a core's caches hold
constexpr std::size_t kDiskBytes = 32u << 20;    // of one LFS: a little is no measure of a disk
constexpr std::size_t kRequestBytes = 256u << 10;
constexpr std::size_t kPage = 4096;
constexpr int kSyncs = 7;
constexpr std::uint32_t kRounds = 200;  // of the word that is timed
constexpr std::size_t kMessageBytes = 1u << 20, kMessages = 16;
constexpr std::uint32_t kElements = 1u << 20;
constexpr std::uint32_t kFewRuns = 2, kManyRuns = 64;
constexpr double kSecondsMax = 1e6;

double median_of(std::vector<double> all) {
  if (all.empty()) return 0;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

struct Hop {
  std::uint32_t number = 0;
  static auto members(auto& self) { return std::tie(self.number); }
};

// Memory that a disk takes from without a copy.
struct Pages {
  explicit Pages(std::size_t bytes)
      : data(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)), &std::free), size(bytes) {
    if (data == nullptr) throw std::bad_alloc();
    std::memset(data.get(), 0x5a, bytes);
  }
  std::unique_ptr<std::byte, void (*)(void*)> data;
  std::size_t size;
};

class Machine {
 public:
  Machine(tool::Worker& worker, tool::Team& team) : worker_(worker), team_(team), pages_(kDiskBytes) {}

  [[nodiscard]] Status measure() {
    PIF_TRY(alone([this] { return measure_memory(); }));
    PIF_TRY(alone([this] { return measure_cache(); }));
    PIF_TRY(alone([this] { return measure_order(); }));
    PIF_TRY(measure_disk());
    PIF_TRY(measure_hop());
    PIF_TRY(measure_network());
    return {};
  }
  const message::Measured& found() const { return found_; }

 private:
  // Seconds that f() takes, the median of some times.
  template <typename F>
  Result<double> time_of(const F& f, int repeats = kRepeats) {
    std::vector<double> all;
    for (int i = 0; i < repeats; ++i) {
      const Time begin = worker_.clock().now();
      PIF_TRY(f());
      all.push_back(std::chrono::duration<double>(worker_.clock().now() - begin).count());
    }
    return median_of(std::move(all));
  }
  template <typename F>
  Status alone(const F& f) {
    return team_.in_turn([&](std::string&) -> Status { return f(); });
  }
  double cores() const { return std::min<double>(worker_.threads() * worker_.width(), std::max(1U, hardware_)); }
  [[nodiscard]] Status measure_memory();
  [[nodiscard]] Status measure_cache();
  [[nodiscard]] Status measure_order();
  [[nodiscard]] Status measure_disk();
  [[nodiscard]] Status measure_hop();
  [[nodiscard]] Status measure_network();
  [[nodiscard]] Status move(int fd, bool writes, std::size_t from, std::size_t step);
  [[nodiscard]] Result<double> time_requests(int fd, bool writes, std::size_t depth);
  double time_merge(std::uint32_t runs, std::span<sort::Element> elements, const sort::KeyMaker& maker);

  tool::Worker& worker_;
  tool::Team& team_;
  Pages pages_;
  message::Measured found_;
  unsigned hardware_ = std::thread::hardware_concurrency();
};

Status Machine::measure_memory() {
  std::vector<std::byte> from(kMemoryBytes), to(kMemoryBytes);
  PIF_TRY_VALUE(const double seconds, time_of([&]() -> Status {
                  std::memcpy(to.data(), from.data(), kMemoryBytes);
                  from[static_cast<std::size_t>(to[7]) + 1] = std::byte{1};  // the copy is needed
                  return {};
                }));
  found_.set_memory_byte(seconds / kMemoryBytes);
  return {};
}

// Every `step` bytes a request, from there on.
Status Machine::move(int fd, bool writes, std::size_t from, std::size_t step) {
  for (std::size_t at = from; at < kDiskBytes; at += step) {
    const auto offset = static_cast<off_t>(at);
    std::byte* const data = pages_.data.get() + at;
    const ssize_t moved = writes ? ::pwrite(fd, data, kRequestBytes, offset) : ::pread(fd, data, kRequestBytes, offset);
    if (moved != static_cast<ssize_t>(kRequestBytes))
      return fail_errno(moved < 0 ? errno : EIO, "cannot measure the disk");
  }
  return {};
}

Status Machine::measure_cache() {
  PIF_TRY_VALUE(tool::Scratch scratch, worker_.scratch());
  PIF_TRY_VALUE(const Handle handle, scratch.share());
  const int fd = handle.fd.get();
  PIF_TRY_VALUE(const double first, time_of([&] { return move(fd, true, 0, kRequestBytes); }, 1));  // to new pages
  found_.set_cached_write_byte(first / kDiskBytes);
  PIF_TRY_VALUE(const double read, time_of([&] { return move(fd, false, 0, kRequestBytes); }));
  found_.set_cached_read_byte(read / kDiskBytes);
  PIF_TRY_VALUE(const double removed, time_of(
                                          [&]() -> Status {
                                            if (::ftruncate(fd, 0) == 0) return {};
                                            return fail_errno(errno, "cannot cut a scratch file");
                                          },
                                          1));
  found_.set_remove_byte(removed / kDiskBytes);
  return {};
}

// Requests of one LFS: `depth` under way.
Result<double> Machine::time_requests(int fd, bool writes, std::size_t depth) {
  PIF_TRY(team_.barrier());
  const auto all = [&] {
    return worker_.run_tasks(depth,
                             [&](std::size_t i) { return move(fd, writes, i * kRequestBytes, depth * kRequestBytes); });
  };
  PIF_TRY_VALUE(const double seconds, time_of(all, 1));
  return seconds / kDiskBytes;
}

// All workers at the same time, as in a job: what is behind several LFSs may be one disk.
Status Machine::measure_disk() {
  PIF_TRY_VALUE(tool::Scratch scratch, worker_.scratch());
  PIF_TRY_VALUE(const Handle handle, scratch.share());
  const int fd = handle.fd.get();
  const auto sync = [&]() -> Status {
    return ::fdatasync(fd) == 0 ? Status() : fail_errno(errno, "cannot sync a scratch file");
  };
  PIF_TRY(team_.barrier());
  PIF_TRY_VALUE(const double durable, time_of(
                                          [&]() -> Status {
                                            PIF_TRY(move(fd, true, 0, kRequestBytes));
                                            return sync();
                                          },
                                          1));
  const int flags = ::fcntl(fd, F_GETFL);
  (void)::fcntl(fd, F_SETFL, flags | O_DIRECT);  // a file system in memory refuses: then it is memory that is measured
  double write_1 = 0, write_8 = 0, read_1 = 0, read_8 = 0;
  PIF_TRY_VALUE(write_1, time_requests(fd, true, 1));
  PIF_TRY_VALUE(write_8, time_requests(fd, true, 8));
  PIF_TRY_VALUE(read_1, time_requests(fd, false, 1));
  PIF_TRY_VALUE(read_8, time_requests(fd, false, 8));
  found_.set_disk_write_byte_1(write_1);
  found_.set_disk_write_byte_8(write_8);
  found_.set_disk_read_byte_1(read_1);
  found_.set_disk_read_byte_8(read_8);
  PIF_TRY(team_.barrier());
  const auto durable_page = [&]() -> Status {
    if (::pwrite(fd, pages_.data.get(), kPage, 0) != static_cast<ssize_t>(kPage))
      return fail_errno(errno, "cannot write a scratch file");
    return sync();
  };
  PIF_TRY_VALUE(const double page, time_of(durable_page, kSyncs));
  found_.set_sync(page);
  found_.set_durable_byte(std::max(0.0, durable - page) / kDiskBytes);
  return {};
}

// A word goes round.
Status Machine::measure_hop() {
  const std::uint32_t next = worker_.rank() + 1 < worker_.width() ? worker_.rank() + 1 : 0;
  const std::uint32_t last = kRounds * worker_.width();
  std::vector<double> all;
  for (int i = 0; i < kRepeats; ++i) {
    PIF_TRY(team_.barrier());
    tool::Talk talk(team_, std::chrono::minutes(1));
    std::optional<tool::Channel<Hop>> hops;
    std::uint32_t seen = 0;
    hops.emplace(talk, 1, tool::ChannelOptions(), [&](const tool::Channel<Hop>::Item& item) -> Status {
      ++seen;
      return item.head.number < last ? hops->send(next, {item.head.number + 1}) : Status();
    });
    const Time begin = worker_.clock().now();
    if (worker_.rank() == 0) PIF_TRY(hops->send(next, {1}));
    PIF_TRY(talk.until([&] { return seen == kRounds; }));
    all.push_back(std::chrono::duration<double>(worker_.clock().now() - begin).count() / last);
    PIF_TRY(talk.end());
  }
  found_.set_hop(median_of(std::move(all)));
  return {};
}

// Everybody sends to his neighbour.
Status Machine::measure_network() {
  const std::uint32_t next = worker_.rank() + 1 < worker_.width() ? worker_.rank() + 1 : 0;
  PIF_TRY(team_.barrier());
  tool::Talk talk(team_, std::chrono::minutes(1));
  std::uint32_t come = 0;
  tool::Channel<Hop> bulk(talk, 1, tool::ChannelOptions(), [&](const tool::Channel<Hop>::Item&) -> Status {
    ++come;
    return {};
  });
  const Time begin = worker_.clock().now();
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    PIF_TRY(talk.until([&] { return bulk.credit(next).allows(kMessageBytes); }));
    net::Buffer body = net::Buffer::copy_of({pages_.data.get(), kMessageBytes});
    PIF_TRY(bulk.send(next, {i}, std::move(body)));
  }
  PIF_TRY(talk.until([&] { return come == kMessages; }));
  const double seconds = std::chrono::duration<double>(worker_.clock().now() - begin).count();
  PIF_TRY(talk.end());
  found_.set_network_byte(seconds * cores() / worker_.width() / (kMessages * kMessageBytes));
  return {};
}

// Seconds for each element.
double Machine::time_merge(std::uint32_t runs, std::span<sort::Element> elements, const sort::KeyMaker& maker) {
  const sort::RecordNumbers numbers(*parity::Layout::make(1));
  sort::Order order(maker, numbers);
  std::vector<sort::RunView> views;
  std::vector<std::size_t> end;
  const std::size_t each = elements.size() / runs;
  for (std::uint32_t i = 0; i < runs; ++i) {
    const auto run = elements.subspan(i * each, each);
    hwy::Sorter()(run.data(), run.size(), hwy::SortAscending());
    views.push_back({0, run, nullptr, nullptr, 16, true});
    end.push_back(each);
  }
  sort::Merger merger(views, std::vector<std::size_t>(runs), std::move(end), order);
  std::uint64_t sum = 0;
  const Time begin = worker_.clock().now();
  for (; !merger.is_done(); merger.advance()) sum += merger.peek().index;
  const double seconds = std::chrono::duration<double>(worker_.clock().now() - begin).count();
  return sum == 1 ? 0 : seconds / static_cast<double>(elements.size());
}

Status Machine::measure_order() {
  sort::KeyOptions keys;
  keys.keys = {"0:10"};
  PIF_TRY_VALUE(const sort::KeyMaker maker, sort::KeyMaker::make(keys, Format::fixed(16)));
  std::mt19937_64 random(worker_.rank());
  std::vector<sort::Element> original(kElements), elements;
  for (std::uint32_t i = 0; i < kElements; ++i) {
    original[i].hi = random();
    original[i].lo = random() << 40 | i;  // of level 0
  }
  std::vector<double> sorts, choices;
  for (int i = 0; i < kRepeats; ++i) {
    elements = original;
    PIF_TRY_VALUE(const double sort, time_of(
                                         [&]() -> Status {
                                           hwy::Sorter()(elements.data(), elements.size(), hwy::SortAscending());
                                           return {};
                                         },
                                         1));
    sorts.push_back(sort / kElements / std::log2(kElements));
    elements = original;
    const double many = time_merge(kManyRuns, elements, maker);
    elements = original;
    const double few = time_merge(kFewRuns, elements, maker);
    choices.push_back(std::max(0.0, many - few) / std::log2(kManyRuns / kFewRuns));
  }
  found_.set_compare(median_of(std::move(sorts)));
  found_.set_merge_choice(median_of(std::move(choices)));
  return {};
}

struct Field {
  double (message::Measured::*get)() const;
  double tool::Constants::*to;
};
using M = message::Measured;
using C = tool::Constants;
constexpr Field kFields[] = {
    {&M::memory_byte, &C::memory_byte},
    {&M::cached_read_byte, &C::cached_read_byte},
    {&M::cached_write_byte, &C::cached_write_byte},
    {&M::disk_read_byte_1, &C::disk_read_byte_1},
    {&M::disk_read_byte_8, &C::disk_read_byte_8},
    {&M::disk_write_byte_1, &C::disk_write_byte_1},
    {&M::disk_write_byte_8, &C::disk_write_byte_8},
    {&M::durable_byte, &C::durable_byte},
    {&M::sync, &C::sync},
    {&M::hop, &C::hop},
    {&M::network_byte, &C::network_byte},
    {&M::compare, &C::compare},
    {&M::merge_choice, &C::merge_choice},
    {&M::remove_byte, &C::remove_byte},
};

}  // namespace

Status measure_machine(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  Machine machine(worker, team);
  PIF_TRY(machine.measure());
  worker.set_result(machine.found().SerializeAsString());
  return {};
}

Status take_measured(const std::vector<std::string>& results, tool::Constants& constants) {
  std::vector<message::Measured> all;
  for (std::uint32_t rank = 0; rank < results.size(); ++rank) {
    PIF_TRY_VALUE(all.emplace_back(), tool::parse_message<message::Measured>(results[rank], rank));
  }
  for (const Field& field : kFields) {
    std::vector<double> values;
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
      const double value = (all[rank].*field.get)();
      if (!(value >= 0 && value <= kSecondsMax)) return tool::sent_nonsense(rank, fmt::format("it took {} s", value));
      values.push_back(value);
    }
    constants.*field.to = median_of(std::move(values));
  }
  return {};
}

}  // namespace pif::calibrate
