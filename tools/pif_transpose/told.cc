#include "told.h"

#include <nlohmann/json.hpp>

namespace pif::transpose {

using Json = nlohmann::json;

std::string pack(const JobSpec& spec) {
  return Json{{"bits", spec.shape.element.bits},
              {"order", static_cast<int>(spec.shape.element.order)},
              {"rows", {spec.shape.rows.begin, spec.shape.rows.end}},
              {"columns", {spec.shape.columns.begin, spec.shape.columns.end}},
              {"algorithm", static_cast<int>(spec.algorithm)},
              {"memory", spec.memory},
              {"measure", spec.measure},
              {"measure_only", spec.measure_only}}
      .dump();
}

JobSpec unpack(std::string_view text) {
  const Json json = Json::parse(text);
  const auto range = [&](const char* name) {
    return Range{json.at(name).at(0).get<std::uint64_t>(), json.at(name).at(1).get<std::uint64_t>()};
  };
  JobSpec spec;
  spec.shape.element = {json.at("bits").get<std::uint32_t>(),
                        static_cast<matrix::BitOrder>(json.at("order").get<int>())};
  spec.shape.rows = range("rows");
  spec.shape.columns = range("columns");
  spec.algorithm = static_cast<Algorithm>(json.at("algorithm").get<int>());
  spec.memory = json.at("memory").get<std::uint64_t>();
  spec.measure = json.at("measure").get<bool>();
  spec.measure_only = json.at("measure_only").get<bool>();
  return spec;
}

std::string pack(const Outcome& outcome) {
  return Json{{"phases", outcome.phases}, {"constants", outcome.constants.pack()}}.dump();
}

Outcome unpack_outcome(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("phases").get<Phases>(), Constants::unpack(json.at("constants").get<std::string>())};
}

}  // namespace pif::transpose
