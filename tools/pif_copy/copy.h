// What pif-copy does, apart from its command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pif/tool/tool_main.h"

namespace pif::copy {

// What the user asked for.
struct Wish {
  std::string source;
  std::string target;
  std::optional<std::uint32_t> width;
  std::vector<std::string> nodes;       // names or NodeIds, in order
  std::optional<std::uint32_t> bevy;
  bool no_clobber = false;
};

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const Wish& wish);
[[nodiscard]] Status work(tool::Worker& worker);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, const Wish& wish);

}  // namespace pif::copy
