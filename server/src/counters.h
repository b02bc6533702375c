// How often each operation was asked for, how often it failed, and how long it took.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "pif/base/clock.h"
#include "pif/proto/messages.pb.h"

namespace pif::server {

class Counters {
 public:
  static constexpr std::size_t kOperationsMax = 128;  // field numbers of Envelope.op

  void add(std::size_t operation, std::string_view name, bool failed, Duration took) {
    One& one = all_[operation];
    one.name = name;
    ++one.count;
    one.errors += failed ? 1 : 0;
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, took.count() / 1000));
    one.total_us += us;
    one.max_us = std::max(one.max_us, us);
  }

  void describe(proto::CountersReply& reply) const {
    for (const One& one : all_) {
      if (one.count == 0) continue;
      proto::Counter& counter = *reply.add_counters();
      counter.set_name("op." + std::string(one.name));
      counter.set_count(one.count);
      counter.set_errors(one.errors);
      counter.set_total_us(one.total_us);
      counter.set_max_us(one.max_us);
    }
  }

 private:
  struct One {
    std::string_view name;
    std::uint64_t count = 0, errors = 0, total_us = 0, max_us = 0;
  };
  std::array<One, kOperationsMax> all_{};
};

}  // namespace pif::server
