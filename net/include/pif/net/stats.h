// Counts of a daemon or a client: how often each operation was asked for, how it ended, how long it took. One thread,
// no locks. The first request of an operation allocates its place, later ones nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "pif/base/clock.h"
#include "pif/base/histogram.h"
#include "pif/base/result.h"
#include "pif/proto/messages.pb.h"
#include "pif/wire/operations.h"

namespace pif::net {

// "read" of the operation's number in Envelope; "op77" for one that this program does not know, "unknown" for 0.
std::string operation_name(int operation);

class Stats {
 public:
  static constexpr std::size_t kOperationsMax = wire::kOpCasesMax;
  static constexpr std::size_t kCodesMax = 32;

  struct One {
    std::uint64_t count = 0;
    std::uint64_t errors = 0;
    std::uint64_t bytes_in = 0;   // bodies that came
    std::uint64_t bytes_out = 0;  // bodies that went
    Duration total{};
    Duration longest{};
    Histogram latency;
  };

  // One request that has ended: `operation`: its number in Envelope; others count as "unknown". bytes: of bodies, in
  // and out. code: kOk, or how it failed.
  void add(int operation, std::uint64_t bytes_in, std::uint64_t bytes_out, Code code, Duration took) {
    One& one = at(operation);
    ++one.count;
    one.bytes_in += bytes_in;
    one.bytes_out += bytes_out;
    one.total += took;
    if (took > one.longest) one.longest = took;
    one.latency.add(took);
    if (code == Code::kOk) return;
    ++one.errors;
    ++errors_[static_cast<std::size_t>(code) < kCodesMax ? static_cast<std::size_t>(code) : 0];
  }
  // So many requests are under way now.
  void set_under_way(std::uint64_t count) {
    under_way_ = count;
    if (count > under_way_max_) under_way_max_ = count;
  }

  // Null if it was never asked for; valid as long as this object.
  const One* find(int operation) const {
    return static_cast<std::size_t>(operation) < kOperationsMax ? operations_[static_cast<std::size_t>(operation)].get()
                                                                : nullptr;
  }
  // Adds what was counted: operations, errors by code, and requests under way. Times in microseconds there.
  void describe(proto::StatsReply& reply) const;

 private:
  One& at(int operation) {
    auto& place =
        operations_[static_cast<std::size_t>(operation) < kOperationsMax ? static_cast<std::size_t>(operation) : 0];
    if (!place) place = std::make_unique<One>();
    return *place;
  }

  std::array<std::unique_ptr<One>, kOperationsMax> operations_;
  std::array<std::uint64_t, kCodesMax> errors_{};  // by Code
  std::uint64_t under_way_ = 0;
  std::uint64_t under_way_max_ = 0;
};

// The latencies of one operation as they travel; buckets that this program does not know count as the last.
Histogram latency_of(const proto::OperationStats& operation);

}  // namespace pif::net
