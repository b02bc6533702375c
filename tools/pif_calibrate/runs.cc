#include "runs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../pif/command/child.h"

namespace pif::calibrate {
namespace {

using Json = nlohmann::json;

constexpr const char* kFolder = "/.pif-calibrate";
constexpr int kRuns = 3;               // of each, of which the middle one counts,
constexpr double kFewRunsFrom = 30.0;  // and one, when all together have taken so many seconds
constexpr auto kDeadline = std::chrono::minutes(10);

double value_in(const std::map<std::string, double>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? 0 : found->second;
}

// The program, with `input`; what it printed.
Result<std::string> run_program(std::vector<std::string> words, const std::string& input) {
  const std::string name = words.front();
  PIF_TRY_VALUE(const cli::ChildTalk talk,
                cli::talk_to_child(std::move(words), input, std::chrono::steady_clock::now() + kDeadline));
  if (talk.was_late) return fail(Code::kTimeout, fmt::format("{} took more than ten minutes", name));
  if (talk.exit_code != 0) {
    const std::string& said = talk.errors.empty() ? talk.output : talk.errors;
    return fail(Code::kIo, fmt::format("{} ended with exit code {}: {}", name, talk.exit_code, said));
  }
  return talk.output;
}

std::string random_bytes(std::size_t size) {
  std::mt19937_64 random(size);  // the same ones each time, so that times can be compared
  std::string bytes(size, '\0');
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, size - at));
  }
  return bytes;
}

}  // namespace

double ToolRun::phase(const std::string& name) const { return value_in(seconds, name); }
double ToolRun::part(const std::string& name) const { return value_in(parts, name); }
double ToolRun::count(const std::string& name) const { return value_in(counts, name); }

double ToolRun::parts_together() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const auto& part) { return sum + part.second; });
}

Result<ToolRun> parse_report(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  ToolRun run;
  using Values = std::map<std::string, double>;
  try {
    run.seconds = json.at("seconds").get<Values>();
    if (json.contains("parts")) run.parts = json.at("parts").get<Values>();
    if (json.contains("counts")) run.counts = json.at("counts").get<Values>();
    run.counts["bytes_cloned"] = json.value("bytes_cloned", 0.0);
  } catch (const Json::exception& error) {
    return fail(Code::kCorrupt, fmt::format("it is no report: {}", error.what()));
  }
  return run;
}

ToolRun median_of(const std::vector<ToolRun>& runs) {
  ToolRun middle;
  const auto take = [&](std::map<std::string, double> ToolRun::*which) {
    std::set<std::string> names;
    for (const ToolRun& run : runs)
      for (const auto& [name, value] : run.*which) names.insert(name);
    for (const std::string& name : names) {
      std::vector<double> values;
      for (const ToolRun& run : runs) values.push_back(value_in(run.*which, name));
      std::sort(values.begin(), values.end());
      (middle.*which)[name] = values[values.size() / 2];
    }
  };
  take(&ToolRun::seconds);
  take(&ToolRun::parts);
  take(&ToolRun::counts);
  return middle;
}

Result<Workspace> Workspace::make(Client& client, std::string where) {
  Status removed = client.remove(kFolder, true);  // what a run left that was killed
  if (!removed && removed.error().code != Code::kNotFound) return fail(std::move(removed.error()));
  PIF_TRY(client.make_folder(kFolder));
  return Workspace(client, std::move(where));
}

Workspace::Workspace(Workspace&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      where_(std::move(other.where_)),
      taken_(std::move(other.taken_)) {}

Workspace::~Workspace() {
  if (client_ != nullptr) (void)client_->remove(kFolder, true).has_value();
}

Status Workspace::put(const std::string& name, std::uint64_t records, std::uint32_t length) {
  PIF_TRY(run_program({"pif", "put", "--pif", where_, "-q", "--record-length", std::to_string(length), "--bevy", "0",
                       "-", fmt::format("{}/{}", kFolder, name)},
                      random_bytes(records * length)));
  return {};
}

Result<ToolRun> Workspace::run(const std::string& tool, std::vector<std::string> options, const std::string& name) {
  const std::string from = fmt::format("{}/{}", kFolder, name), to = fmt::format("{}/out", kFolder);
  std::vector<std::string> words = {"pif-" + tool, "--pif", where_, "--json"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {from, to});
  std::vector<ToolRun> runs;
  while (runs.size() < (std::accumulate(taken_.begin(), taken_.end(), 0.0) > kFewRunsFrom ? 1 : kRuns)) {
    const auto begin = std::chrono::steady_clock::now();
    PIF_TRY_VALUE(const std::string report, run_program(words, {}));
    PIF_TRY_VALUE(runs.emplace_back(), parse_report(report));
    taken_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median_of(runs);
}

Result<std::vector<std::string>> Workspace::lfss(const std::string& name) {
  PIF_TRY_VALUE(const File file, client_->open(fmt::format("{}/{}", kFolder, name)));
  std::vector<std::string> names;
  for (const std::uint32_t node : file.nodes()) names.push_back(std::to_string(node));
  return names;
}

}  // namespace pif::calibrate
