#include "pif/tool/prediction.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace pif::tool {
namespace {

constexpr double kBehindBytes = 8u << 20;  // of a component, which the kernel is not asked to write yet (component/)

}  // namespace

double seconds_of(const Terms& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0,
                         [](double sum, const auto& term) { return sum + term.second; });
}

double PhasePrediction::seconds() const { return seconds_of(terms); }

std::string PhasePrediction::largest() const {
  const auto by_seconds = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto found = std::max_element(terms.begin(), terms.end(), by_seconds);
  return found == terms.end() ? std::string() : found->first;
}

void Prediction::add(std::string phase, Terms terms) { phases.push_back({std::move(phase), std::move(terms)}); }

double Prediction::seconds() const {
  return std::accumulate(phases.begin(), phases.end(), 0.0,
                         [](double sum, const PhasePrediction& phase) { return sum + phase.seconds(); });
}

const PhasePrediction* Prediction::find(const std::string& phase) const {
  const auto found = std::find_if(phases.begin(), phases.end(), [&](const auto& one) { return one.name == phase; });
  return found == phases.end() ? nullptr : &*found;
}

std::string Prediction::to_text() const {
  std::string text = fmt::format("{:.2f} s", seconds());
  const char* separator = ": ";
  for (const PhasePrediction& phase : phases) {
    text += fmt::format("{}{} {:.2f}", std::exchange(separator, ", "), phase.name, phase.seconds());
  }
  return text;
}

Terms longer(Terms a, Terms b) { return seconds_of(a) < seconds_of(b) ? b : a; }

Prediction around_work(const Constants& c, const JobShape& shape, const Prediction& work) {
  Prediction all;
  all.add("connect", {{"connect", c.connect}});
  all.add("create", {{"create", c.create}});
  all.add("spawn", {{"spawn", c.spawn}});
  for (const PhasePrediction& phase : work.phases) all.phases.push_back(phase);
  if (work.find(kWorkPhase) != nullptr || work.find(kStartPhase) != nullptr) {
    all.phases.back().terms.emplace_back("start", c.start);
  } else {
    all.add(kStartPhase, {{"start", c.start}});
  }
  const double bytes = static_cast<double>(shape.component_bytes);
  const double left = std::max(bytes * c.durable_byte - work.writing, std::min(bytes, kBehindBytes) * c.durable_byte);
  all.add("seal", {{"seal", c.seal}, {"durable_byte", left}});
  all.add("commit", {{"commit", c.commit}});
  return all;
}

}  // namespace pif::tool
