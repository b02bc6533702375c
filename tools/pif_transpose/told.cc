#include "told.h"

#include <nlohmann/json.hpp>

namespace pif::transpose {

using Json = nlohmann::json;

std::string pack(const Told& told) {
  return Json{{"bits", told.shape.element.bits},
              {"order", static_cast<int>(told.shape.element.order)},
              {"rows", {told.shape.rows.begin, told.shape.rows.end}},
              {"columns", {told.shape.columns.begin, told.shape.columns.end}},
              {"algorithm", static_cast<int>(told.algorithm)},
              {"memory", told.memory},
              {"measure", told.measure},
              {"measure_only", told.measure_only}}
      .dump();
}

Told unpack(std::string_view text) {
  const Json json = Json::parse(text);
  const auto range = [&](const char* name) {
    return Range{json.at(name).at(0).get<std::uint64_t>(), json.at(name).at(1).get<std::uint64_t>()};
  };
  Told told;
  told.shape.element = {json.at("bits").get<std::uint32_t>(), static_cast<matrix::BitOrder>(json.at("order").get<int>())};
  told.shape.rows = range("rows");
  told.shape.columns = range("columns");
  told.algorithm = static_cast<Algorithm>(json.at("algorithm").get<int>());
  told.memory = json.at("memory").get<std::uint64_t>();
  told.measure = json.at("measure").get<bool>();
  told.measure_only = json.at("measure_only").get<bool>();
  return told;
}

std::string pack(const Outcome& outcome) {
  return Json{{"phases", outcome.phases}, {"constants", outcome.constants.pack()}}.dump();
}

Outcome unpack_outcome(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("phases").get<Phases>(), Constants::unpack(json.at("constants").get<std::string>())};
}

}  // namespace pif::transpose
