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
  using E = proto::Envelope;
  switch (operation) {
    case E::OP_NOT_SET: return "unknown";
    case E::kHello: return "hello";
    case E::kBye: return "bye";
    case E::kCounters: return "counters";
    case E::kStats: return "stats";
    case E::kStat: return "stat";
    case E::kList: return "list";
    case E::kMakeFolder: return "make_folder";
    case E::kCreate: return "create";
    case E::kCommit: return "commit";
    case E::kAbort: return "abort";
    case E::kOpen: return "open";
    case E::kClose: return "close";
    case E::kRemove: return "remove";
    case E::kRename: return "rename";
    case E::kSetAttributes: return "set_attributes";
    case E::kNodes: return "nodes";
    case E::kHeartbeat: return "heartbeat";
    case E::kFileStates: return "file_states";
    case E::kListFiles: return "list_files";
    case E::kRenew: return "renew";
    case E::kAttach: return "attach";
    case E::kRead: return "read";
    case E::kWrite: return "write";
    case E::kSeal: return "seal";
    case E::kOverwrite: return "overwrite";
    case E::kReadBytes: return "read_bytes";
    case E::kOffsets: return "offsets";
    case E::kLength: return "length";
    case E::kReserve: return "reserve";
    case E::kAppendRows: return "append_rows";
    case E::kAppendDone: return "append_done";
    case E::kAppendCancel: return "append_cancel";
    case E::kSettle: return "settle";
    case E::kListComponents: return "list_components";
    case E::kCheckComponent: return "check_component";
    case E::kFlush: return "flush";
    case E::kSpawn: return "spawn";
    case E::kJobWait: return "job_wait";
    case E::kJobKill: return "job_kill";
    case E::kJobMeet: return "job_meet";
    case E::kWorkerStart: return "worker_start";
    case E::kWorkerProgress: return "worker_progress";
    case E::kWorkerResult: return "worker_result";
    case E::kWorkerScratch: return "worker_scratch";
    case E::kWorkerMeet: return "worker_meet";
    default: return fmt::format("op{}", operation);
  }
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

void Stats::describe(proto::CountersReply& reply) const {
  for (std::size_t i = 0; i < kOperationsMax; ++i) {
    if (!operations_[i]) continue;
    const One& one = *operations_[i];
    proto::Counter& out = *reply.add_counters();
    out.set_name("op." + operation_name(static_cast<int>(i)));
    out.set_count(one.count);
    out.set_bytes(one.bytes_in + one.bytes_out);
    out.set_errors(one.errors);
    out.set_total_us(microseconds(one.total));
    out.set_max_us(microseconds(one.longest));
  }
}

Histogram latency_of(const proto::OperationStats& operation) {
  Histogram out;
  const int count = std::min(operation.buckets_size(), operation.counts_size());
  for (int i = 0; i < count; ++i)
    out.add_count(std::min<std::size_t>(operation.buckets(i), Histogram::kBuckets - 1), operation.counts(i));
  return out;
}

}  // namespace pif::net
