// How much each worker made of an output, as its result, where a tool makes one. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/tool/controller.h"

namespace pif::tool {

// A worker gives it with set_result_as().
struct Made {
  std::uint64_t records = 0, bytes = 0;
  // The values in the order of a result's bytes.
  static auto members(auto& self) { return std::tie(self.records, self.bytes); }
};

// All workers together, by their results. kCorrupt: as results_as().
[[nodiscard]] inline Result<FileLength> sum_of_made(const std::vector<std::string>& results) {
  PIF_TRY_VALUE(const auto all, results_as<Made>(results));
  FileLength sum;
  for (const Made& made : all) {
    sum.records += made.records;
    sum.bytes += made.bytes;
  }
  return sum;
}

}  // namespace pif::tool
