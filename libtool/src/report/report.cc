#include "pif/tool/report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pif/base/assert.h"

namespace pif::tool {
namespace {

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }
double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

constexpr double kWorthBlame = 0.2;  // seconds: what is shorter is not looked into
constexpr double kMayBeOff = 0.25;   // of what was measured

double difference(const Report::Comparison& one) {
  return one.predicted && one.measured ? std::abs(*one.predicted - *one.measured) : 0;
}
bool is_off(const Report::Comparison& one) {
  return one.measured && *one.measured > kWorthBlame && difference(one) > kMayBeOff * *one.measured;
}

std::optional<double> found_in(const std::vector<std::pair<std::string, Duration>>& times, const std::string& name) {
  for (const auto& [each, time] : times)
    if (each == name) return seconds_of(time);
  return std::nullopt;
}

nlohmann::ordered_json json_of(const std::vector<std::pair<std::string, Duration>>& times) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, time] : times) json[name] = seconds_of(time);
  return json;
}

nlohmann::ordered_json json_of(const Report::Comparison& one) {
  auto json = nlohmann::ordered_json::object();
  if (one.predicted) json["predicted"] = *one.predicted;
  if (one.measured) json["measured"] = *one.measured;
  if (!one.to_blame.empty()) json["to_blame"] = one.to_blame;
  return json;
}

std::string text_of(const Report::Comparison& one) {
  std::string text = fmt::format("  {}:", one.part);
  if (one.predicted) text += fmt::format(" predicted {:.3f} s", *one.predicted);
  if (one.measured) text += fmt::format("{} measured {:.3f} s", one.predicted ? "," : "", *one.measured);
  if (!one.to_blame.empty()) text += fmt::format(", off by more than a quarter: to blame is {}", one.to_blame);
  return text + '\n';
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

std::vector<Report::Comparison> Report::comparisons() const {
  std::vector<Comparison> all;
  if (!prediction) {
    for (const auto& [name, time] : parts) all.push_back({name, std::nullopt, seconds_of(time), {}});
    return all;
  }
  double rest = found_in(phases, "work").value_or(0);  // of the work, beside its parts
  for (const auto& [name, time] : parts) rest -= seconds_of(time);
  for (const PhasePrediction& phase : prediction->phases) {
    Comparison one{phase.name, phase.seconds(), found_in(parts, phase.name), {}};
    if (!one.measured) one.measured = found_in(phases, phase.name);
    if (!one.measured && phase.name == kStartPhase) one.measured = std::max(rest, 0.0);
    if (is_off(one)) one.to_blame = phase.largest();
    all.push_back(std::move(one));
  }
  Comparison whole{"total", prediction->seconds(), seconds_of(total()), {}};
  if (is_off(whole) && !all.empty()) {
    const auto most = std::max_element(all.begin(), all.end(),
                                       [](const auto& a, const auto& b) { return difference(a) < difference(b); });
    const PhasePrediction* const predicted = prediction->find(most->part);
    PIF_ASSERT(predicted != nullptr, all.size());
    whole.to_blame = fmt::format("{}: {}", most->part, predicted->largest());
  }
  all.push_back(std::move(whole));
  return all;
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
  json["bytes_messaged"] = bytes_messaged;
  json["bytes_client_side"] = bytes_client_side;
  json["seconds"] = json_of(phases);
  json["seconds_total"] = seconds_of(total());
  for (const auto& [name, count] : counts) json["counts"][name] = count;
  for (const auto& [name, value] : results)
    std::visit([&, &key = name](const auto& v) { json["results"][key] = v; }, value);
  if (!parts.empty()) json["parts"] = json_of(parts);
  if (!calibration.empty()) json["calibration"] = calibration;
  for (const Comparison& one : comparisons()) json["predictions"][one.part] = json_of(one);
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
  if (!calibration.empty()) text += fmt::format("  calibration: {}\n", calibration);
  for (const Comparison& one : comparisons()) text += text_of(one);
  for (const auto& [name, value] : results) {
    std::visit([&, &key = name](const auto& v) { text += fmt::format("  {} {}\n", key, v); }, value);
  }
  for (const auto& [name, count] : counts) text += fmt::format("  {} {}\n", name, count);
  return text;
}

}  // namespace pif::tool
