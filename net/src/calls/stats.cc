#include "pif/net/stats.h"

#include <algorithm>

#include <fmt/format.h>

namespace pif::net {
namespace {

std::uint64_t microseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration.count() / 1000));
}

void describe_latency(const Histogram& latency, proto::OperationStats& out) {
  for (std::size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    if (latency.count(bucket) == 0) continue;
    out.add_buckets(static_cast<std::uint32_t>(bucket));
    out.add_counts(latency.count(bucket));
  }
}

}  // namespace

std::string operation_name(int operation) {
  if (const wire::Operation* known = wire::find_operation(operation)) return std::string(known->label);
  return operation == proto::Envelope::OP_NOT_SET ? "unknown" : fmt::format("op{}", operation);
}

void Stats::describe(proto::StatsReply& reply) const {
  for (std::size_t i = 0; i < kOperationsMax; ++i) {
    if (!operations_[i]) continue;
    const One& one = *operations_[i];
    proto::OperationStats& out = *reply.add_operations();
    out.set_name(operation_name(static_cast<int>(i)));
    out.set_count(one.count);
    out.set_errors(one.errors);
    out.set_bytes_in(one.bytes_in);
    out.set_bytes_out(one.bytes_out);
    out.set_total_us(microseconds(one.total));
    out.set_max_us(microseconds(one.longest));
    describe_latency(one.latency, out);
  }
  for (std::size_t code = 0; code < kCodesMax; ++code) {
    if (errors_[code] == 0) continue;
    reply.add_error_codes(static_cast<std::uint32_t>(code));
    reply.add_error_counts(errors_[code]);
  }
  reply.set_under_way(under_way_);
  reply.set_under_way_max(under_way_max_);
}

Histogram latency_of(const proto::OperationStats& operation) {
  Histogram out;
  const int count = std::min(operation.buckets_size(), operation.counts_size());
  for (int i = 0; i < count; ++i)
    out.add_count(std::min<std::size_t>(operation.buckets(i), Histogram::kBuckets - 1), operation.counts(i));
  return out;
}

}  // namespace pif::net
