#include "pif/tool/report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pif::tool {
namespace {

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }
double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// More than twice or less than half, and not by a trifle.
bool is_far_off(const Report::Prediction& one) {
  const double predicted = seconds_of(one.predicted), measured = seconds_of(one.measured);
  return std::abs(predicted - measured) > 0.1 && (measured > 2 * predicted || predicted > 2 * measured);
}

}  // namespace

void Report::add(const std::string& phase, Duration time) {
  for (auto& [name, sum] : phases) {
    if (name == phase) {
      sum += time;
      return;
    }
  }
  phases.emplace_back(phase, time);
}

Duration Report::total() const {
  Duration sum{};
  for (const auto& [name, time] : phases) sum += time;
  return sum;
}

std::string Report::to_json() const {
  nlohmann::ordered_json json;
  json["tool"] = tool;
  json["workers"] = workers;
  json["records"] = records;
  json["bytes"] = bytes;
  json["bytes_read_local"] = bytes_read_local;
  json["bytes_written_local"] = bytes_written_local;
  json["bytes_cloned"] = bytes_cloned;
  json["bytes_moved"] = bytes_moved;
  json["bytes_client_side"] = bytes_client_side;
  auto& times = json["seconds"] = nlohmann::ordered_json::object();
  for (const auto& [name, time] : phases) times[name] = seconds_of(time);
  json["seconds_total"] = seconds_of(total());
  for (const auto& [name, count] : counts) json["counts"][name] = count;
  for (const auto& [name, value] : results)
    std::visit([&, &key = name](const auto& v) { json["results"][key] = v; }, value);
  for (const Prediction& one : predictions) {
    json["predictions"][one.part] = {{"predicted", seconds_of(one.predicted)}, {"measured", seconds_of(one.measured)}};
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string Report::to_text() const {
  std::string text = fmt::format("{}: {} records, {:.1f} MiB, {} workers\n", tool, records, mib(bytes), workers);
  text += fmt::format("  read locally {:.1f} MiB, written locally {:.1f} MiB", mib(bytes_read_local),
                      mib(bytes_written_local));
  if (bytes_cloned > 0) text += fmt::format(" ({:.1f} MiB of them cloned)", mib(bytes_cloned));
  text += fmt::format("\n  moved between nodes {:.1f} MiB; through one client it would have been {:.1f} MiB\n ",
                      mib(bytes_moved), mib(bytes_client_side));
  for (const auto& [name, time] : phases) text += fmt::format(" {} {:.3f} s", name, seconds_of(time));
  text += fmt::format(", together {:.3f} s\n", seconds_of(total()));
  for (const Prediction& one : predictions) {
    text += fmt::format("  {}: predicted {:.3f} s, measured {:.3f} s{}\n", one.part, seconds_of(one.predicted),
                        seconds_of(one.measured), is_far_off(one) ? ", which is far off" : "");
  }
  for (const auto& [name, value] : results) {
    std::visit([&, &key = name](const auto& v) { text += fmt::format("  {} {}\n", key, v); }, value);
  }
  for (const auto& [name, count] : counts) text += fmt::format("  {} {}\n", name, count);
  return text;
}

}  // namespace pif::tool
