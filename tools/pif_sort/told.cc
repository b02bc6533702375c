#include "told.h"

#include <nlohmann/json.hpp>

namespace pif::sort {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string pack(const SortOptions& wanted) {
  Json keys = Json::array();
  for (const std::string& key : wanted.keys.keys) keys.push_back(key);
  const std::string separator = wanted.keys.separator ? std::string(1, *wanted.keys.separator) : std::string();
  return Json{{"keys", keys},
              {"separator", Json::binary({separator.begin(), separator.end()})},
              {"numeric", wanted.keys.numeric},
              {"reverse", wanted.keys.reverse},
              {"blanks", wanted.keys.skip_blanks},
              {"unique", wanted.unique},
              {"memory", wanted.memory},
              {"merge", static_cast<int>(wanted.merge)},
              {"batch", wanted.token_batch},
              {"measure", wanted.measure},
              {"measure_only", wanted.measure_only}}
      .dump(-1, ' ', true);
}

SortOptions unpack(std::string_view text) {
  const Json json = Json::parse(text);
  SortOptions wanted;
  for (const auto& key : json.at("keys")) wanted.keys.keys.push_back(key.get<std::string>());
  const auto& separator = json.at("separator").at("bytes");
  if (!separator.empty()) wanted.keys.separator = static_cast<char>(separator.at(0).get<int>());
  wanted.keys.numeric = json.at("numeric").get<bool>();
  wanted.keys.reverse = json.at("reverse").get<bool>();
  wanted.keys.skip_blanks = json.at("blanks").get<bool>();
  wanted.unique = json.at("unique").get<bool>();
  wanted.memory = json.at("memory").get<std::uint64_t>();
  wanted.merge = static_cast<MergeKind>(json.at("merge").get<int>());
  wanted.token_batch = json.at("batch").get<std::uint64_t>();
  wanted.measure = json.at("measure").get<bool>();
  wanted.measure_only = json.at("measure_only").get<bool>();
  return wanted;
}

std::string pack(const Outcome& outcome) {
  return Json{{"records", outcome.put_out.records},    {"bytes", outcome.put_out.bytes},
              {"hops", outcome.counts.hops},           {"crossings", outcome.counts.crossings},
              {"acted", outcome.counts.acted.count()}, {"sort", outcome.sort_seconds},
              {"merge", outcome.merge_seconds},        {"constants", outcome.constants.pack()}}
      .dump();
}

Outcome unpack_outcome(const std::string& text) {
  const Json json = Json::parse(text);
  Outcome outcome;
  outcome.put_out = {json.at("records").get<std::uint64_t>(), json.at("bytes").get<std::uint64_t>()};
  outcome.counts = {json.at("hops").get<std::uint64_t>(), json.at("crossings").get<std::uint64_t>(),
                    Duration(json.at("acted").get<Duration::rep>())};
  outcome.sort_seconds = json.at("sort").get<double>();
  outcome.merge_seconds = json.at("merge").get<double>();
  outcome.constants = Constants::unpack(json.at("constants").get<std::string>());
  return outcome;
}

}  // namespace pif::sort
