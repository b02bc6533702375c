#include "report/trace_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pif/tool/message.h"

namespace pif::tool {
namespace {

using Json = nlohmann::ordered_json;

// The controller is process 0, workers come behind it.
Json process_name(std::uint32_t process, const std::string& name) {
  return {{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", name}}}};
}

Json event_of(std::uint32_t process, const job::Span& span) {
  Json event = {{"ph", "X"},          {"name", span.name()}, {"pid", process}, {"tid", span.thread()},
                {"ts", span.begin()}, {"dur", span.length()}};
  if (span.bytes() > 0) event["args"]["bytes"] = span.bytes();
  if (span.has_other()) event["args"]["other"] = worker_name(span.other());
  return event;
}

}  // namespace

void TraceFile::add_worker(std::uint32_t rank, const std::string& node, const job::WorkerEnd& end) {
  Noted& noted = workers_.emplace_back();
  noted.rank = rank;
  noted.node = node;
  *noted.end.mutable_spans() = end.spans();
  noted.end.set_spans_left_out(end.spans_left_out());
}

std::string TraceFile::to_json(const Report& report, const Clock& clock) const {
  Json events = Json::array();
  events.push_back(process_name(0, report.tool));
  const std::int64_t to_wall = clock.wall_ns() - clock.now().time_since_epoch().count();
  for (const Report::Lap& lap : report.laps) {
    events.push_back({{"ph", "X"},
                      {"name", lap.phase},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", (lap.begin.time_since_epoch().count() + to_wall) / 1000},
                      {"dur", lap.time / std::chrono::microseconds(1)}});
  }
  for (const Noted& worker : workers_) {
    std::string name = fmt::format("worker {} on {}", worker.rank, worker.node);
    if (const auto count = worker.end.spans_left_out(); count > 0) name += fmt::format(" ({} events left out)", count);
    events.push_back(process_name(worker.rank + 1, name));
    for (const job::Span& span : worker.end.spans()) events.push_back(event_of(worker.rank + 1, span));
  }
  const Json document = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace pif::tool
