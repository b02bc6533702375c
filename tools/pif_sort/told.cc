#include "told.h"

#include <nlohmann/json.hpp>

namespace pif::sort {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string pack(const Wish& wish) {
  Json keys = Json::array();
  for (const std::string& key : wish.keys.keys) keys.push_back(key);
  const std::string separator = wish.keys.separator ? std::string(1, *wish.keys.separator) : std::string();
  return Json{{"keys", keys},
              {"separator", Json::binary({separator.begin(), separator.end()})},
              {"numeric", wish.keys.numeric},
              {"reverse", wish.keys.reverse},
              {"blanks", wish.keys.skip_blanks},
              {"unique", wish.unique},
              {"memory", wish.memory},
              {"merge", static_cast<int>(wish.merge)},
              {"batch", wish.token_batch},
              {"measure", wish.measure}, {"measure_only", wish.measure_only}}
      .dump(-1, ' ', true);
}

Wish unpack(std::string_view text) {
  const Json json = Json::parse(text);
  Wish wish;
  for (const auto& key : json.at("keys")) wish.keys.keys.push_back(key.get<std::string>());
  const auto& separator = json.at("separator").at("bytes");
  if (!separator.empty()) wish.keys.separator = static_cast<char>(separator.at(0).get<int>());
  wish.keys.numeric = json.at("numeric").get<bool>();
  wish.keys.reverse = json.at("reverse").get<bool>();
  wish.keys.skip_blanks = json.at("blanks").get<bool>();
  wish.unique = json.at("unique").get<bool>();
  wish.memory = json.at("memory").get<std::uint64_t>();
  wish.merge = static_cast<MergeKind>(json.at("merge").get<int>());
  wish.token_batch = json.at("batch").get<std::uint64_t>();
  wish.measure = json.at("measure").get<bool>();
  wish.measure_only = json.at("measure_only").get<bool>();
  return wish;
}

std::string pack(const Outcome& outcome) {
  return Json{{"records", outcome.put_out.records}, {"bytes", outcome.put_out.bytes},
              {"hops", outcome.counts.hops},        {"crossings", outcome.counts.crossings},
              {"acted", outcome.counts.acted.count()},
              {"sort", outcome.sort_seconds},       {"merge", outcome.merge_seconds},
              {"constants", outcome.constants.pack()}}
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
